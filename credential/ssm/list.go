package ssm

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/einmal-operators/einmal/credential"
)

// Below returns the sorted names of all parameters below a name, relative to that name. For example, with the prefix /tenants, Below("acme")
// returns "web/db" and "web/db/g1" for /tenants/acme/web/db and its first generation. It reads no values, so it does not check the owner. It needs
// permission for ssm:GetParametersByPath.
func (s *Store) Below(ctx context.Context, name string) ([]string, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	var found []string
	path := s.Path(name)
	request := &awsssm.GetParametersByPathInput{Path: &path, Recursive: aws.Bool(true), MaxResults: aws.Int32(maxNames), WithDecryption: aws.Bool(false)}
	for pages := awsssm.NewGetParametersByPathPaginator(s.options.Client, request); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx, s.options.Limits.reading)
		if err != nil {
			return nil, told("list what is below", path, err, credential.Password{})
		}
		for _, parameter := range page.Parameters {
			if below, is := strings.CutPrefix(aws.ToString(parameter.Name), path+"/"); is {
				found = append(found, below)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}
