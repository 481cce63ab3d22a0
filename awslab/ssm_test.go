package awslab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/awslab"
)

func secure(name, value string) *ssm.PutParameterInput {
	return &ssm.PutParameterInput{Name: &name, Value: &value, Type: types.ParameterTypeSecureString}
}

// Parameters are created without overwriting, read by up to ten names, with missing names reported, and deleted.
func TestParametersAreCreatedOnceReadAndDeleted(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, awslab.Options{}), t.Context()
	put := secure("/lab/app/db", "first")
	put.KeyId, put.Tags = aws.String("alias/tenants"), []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}
	made, err := w.parameters.PutParameter(ctx, put)
	w.expectCode(err, "")
	_, err = w.parameters.PutParameter(ctx, secure("/lab/app/db", "second"))
	w.expectCode(err, "ParameterAlreadyExists")
	got, err := w.parameters.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/lab/app/db", "/lab/none"}, WithDecryption: aws.Bool(true)})
	w.expectCode(err, "")
	if made.Version != 1 || len(got.Parameters) != 1 || *got.Parameters[0].Value != "first" || got.Parameters[0].Version != 1 ||
		!cmp.Equal(got.InvalidParameters, []string{"/lab/none"}) || time.Since(*got.Parameters[0].LastModifiedDate).Abs() > time.Minute {
		t.Errorf("created version %v, read %+v", made.Version, got)
	}
	sealed, err := w.parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/lab/app/db")})
	w.expectCode(err, "")
	if *sealed.Parameter.Value == "first" {
		t.Error("the value of a SecureString is returned without decryption")
	}
	tags, err := w.parameters.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String("/lab/app/db")})
	w.expectCode(err, "")
	if len(tags.TagList) != 1 || *tags.TagList[0].Key != "team" || *tags.TagList[0].Value != "a" {
		t.Errorf("tags %+v, want team: a", tags.TagList)
	}
	over := secure("/lab/app/db", "third")
	over.Overwrite = aws.Bool(true)
	changed, err := w.parameters.PutParameter(ctx, over)
	w.expectCode(err, "")
	if changed.Version != 2 {
		t.Errorf("the version is %d after an overwrite, want 2", changed.Version)
	}
	for selector, want := range map[string]string{":1": "first", ":2": "third", "": "third"} {
		got, err := w.parameters.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/lab/app/db" + selector}, WithDecryption: aws.Bool(true)})
		w.expectCode(err, "")
		if len(got.Parameters) != 1 || *got.Parameters[0].Name != "/lab/app/db" || aws.ToString(got.Parameters[0].Selector) != selector || *got.Parameters[0].Value != want {
			t.Errorf("selector %q: got %+v, want value %s", selector, got, want)
		}
	}
	_, err = w.parameters.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String("/lab/app/db")})
	w.expectCode(err, "")
	_, err = w.parameters.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String("/lab/app/db")})
	w.expectCode(err, "ParameterNotFound")
	_, err = w.parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/lab/app/db")})
	w.expectCode(err, "ParameterNotFound")
}

func TestParametersFollowTheRulesOfSSM(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, awslab.Options{}), t.Context()
	tagged := secure("/lab/x", "v")
	tagged.Overwrite, tagged.Tags = aws.Bool(true), []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}
	for name, put := range map[string]*ssm.PutParameterInput{
		"tags and overwrite":    tagged,
		"more than 4 KB":        secure("/lab/x", strings.Repeat("x", 4097)),
		"an empty value":        secure("/lab/x", ""),
		"a name from aws":       secure("/aws/x", "v"),
		"a path without /":      secure("lab/x", "v"),
		"a character too many":  secure("/lab/x y", "v"),
		"a reference":           secure("/lab/x", "{{ssm:/lab/y}}"),
		"a name that ends in /": secure("/lab/", "v"),
	} {
		_, err := w.parameters.PutParameter(ctx, put)
		t.Log(name)
		w.expectCode(err, "ValidationException")
	}
	_, err := w.parameters.PutParameter(ctx, secure(strings.Repeat("/a", 16), "v"))
	w.expectCode(err, "HierarchyLevelLimitExceededException")
	var names []string
	for i := range 11 {
		names = append(names, fmt.Sprint("/lab/", i))
	}
	_, err = w.parameters.GetParameters(ctx, &ssm.GetParametersInput{Names: names})
	w.expectCode(err, "ValidationException")
}

// The journal records each attempt, including throttled, refused and lost ones, without values.
func TestPlannedFaultsAreInTheJournal(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, awslab.Options{}), t.Context()
	w.lab.Fail("PutParameter", awslab.Fault{Code: "ThrottlingException"}, awslab.Fault{Lost: true, Resource: "/lab/b"})
	_, err := w.parameters.PutParameter(ctx, secure("/lab/a", "secret-a"))
	w.expectCode(err, "")
	// The response is lost. The SDK retries, which fails because the parameter exists.
	_, err = w.parameters.PutParameter(ctx, secure("/lab/b", "secret-b"))
	w.expectCode(err, "ParameterAlreadyExists")
	w.lab.Fail("GetParameter", slices.Repeat([]awslab.Fault{{Code: "AccessDeniedException"}}, 2)...)
	for range 2 {
		_, err = w.parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/lab/a")})
		w.expectCode(err, "AccessDeniedException")
	}
	put := func(name, code string) awslab.Call {
		return awslab.Call{Service: "ssm", Action: "PutParameter", Resource: name, Write: true, Code: code}
	}
	get := awslab.Call{Service: "ssm", Action: "GetParameter", Resource: "/lab/a", Code: "AccessDeniedException"}
	want := []awslab.Call{
		put("/lab/a", "ThrottlingException"), put("/lab/a", ""),
		put("/lab/b", ""), put("/lab/b", "ParameterAlreadyExists"), get, get,
	}
	if diff := cmp.Diff(want, w.lab.Journal()); diff != "" || w.lab.Writes() != 4 || w.lab.Count("GetParameter") != 2 {
		t.Errorf("%d writes in the journal (-want +got):\n%s", w.lab.Writes(), diff)
	}
	w.lab.Forget()
	w.lab.Refuse(true)
	if _, err = w.parameters.PutParameter(ctx, secure("/lab/c", "v")); err == nil {
		t.Error("a call with a refused connection succeeded")
	}
	w.lab.Refuse(false)
	_, err = w.parameters.PutParameter(ctx, secure("/lab/c", "v"))
	w.expectCode(err, "")
	if all := w.lab.Journal(); len(all) != 4 || all[0].Code != awslab.CodeRefused {
		t.Errorf("journal %v, want three refused attempts and one that succeeds", w.lab.Journal())
	}
}

// The name of a deleted parameter stays reserved for a while.
func TestNamesOfDeletedParametersStayReserved(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, awslab.Options{RecreateAfter: 300 * time.Millisecond}), t.Context()
	_, err := w.parameters.PutParameter(ctx, secure("/lab/a", "v"))
	w.expectCode(err, "")
	_, err = w.parameters.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String("/lab/a")})
	w.expectCode(err, "")
	_, err = w.parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/lab/a")})
	w.expectCode(err, "ParameterNotFound")
	_, err = w.parameters.PutParameter(ctx, secure("/lab/a", "v"))
	w.expectCode(err, "ParameterAlreadyExists")
	w.eventually("the name is free", func() bool { _, err := w.parameters.PutParameter(ctx, secure("/lab/a", "v")); return err == nil })
}
