package awslab_test

import (
	"fmt"
	"maps"
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

// tenant-and-database.md §2: create-only puts, reads of up to ten names of which the missing ones are told, and deletions, with the real SDK.
func TestParametersAreMadeOnceReadAndDeleted(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, awslab.Options{}), t.Context()
	put := secure("/lab/app/db", "first")
	put.KeyId, put.Tags = aws.String("alias/tenants"), []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}
	made, err := w.parameters.PutParameter(ctx, put)
	w.says(err, "")
	_, err = w.parameters.PutParameter(ctx, secure("/lab/app/db", "second"))
	w.says(err, "ParameterAlreadyExists")
	got, err := w.parameters.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/lab/app/db", "/lab/none"}, WithDecryption: aws.Bool(true)})
	w.says(err, "")
	if made.Version != 1 || len(got.Parameters) != 1 || *got.Parameters[0].Value != "first" || got.Parameters[0].Version != 1 ||
		!cmp.Equal(got.InvalidParameters, []string{"/lab/none"}) || time.Since(*got.Parameters[0].LastModifiedDate).Abs() > time.Minute {
		t.Errorf("made %v, got %+v", made.Version, got)
	}
	sealed, err := w.parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/lab/app/db")})
	w.says(err, "")
	if *sealed.Parameter.Value == "first" {
		t.Error("a SecureString is shown without decryption")
	}
	tags, err := w.parameters.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: aws.String("/lab/app/db")})
	w.says(err, "")
	if len(tags.TagList) != 1 || *tags.TagList[0].Key != "team" || *tags.TagList[0].Value != "a" {
		t.Errorf("the tags are %+v", tags.TagList)
	}
	over := secure("/lab/app/db", "third")
	over.Overwrite = aws.Bool(true)
	changed, err := w.parameters.PutParameter(ctx, over)
	w.says(err, "")
	if changed.Version != 2 {
		t.Errorf("the version is %d after an overwrite, want 2", changed.Version)
	}
	for selector, want := range map[string]string{":1": "first", ":2": "third", "": "third"} {
		got, err := w.parameters.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/lab/app/db" + selector}, WithDecryption: aws.Bool(true)})
		w.says(err, "")
		if len(got.Parameters) != 1 || *got.Parameters[0].Name != "/lab/app/db" || aws.ToString(got.Parameters[0].Selector) != selector || *got.Parameters[0].Value != want {
			t.Errorf("with the selector %q: %+v", selector, got)
		}
	}
	_, err = w.parameters.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String("/lab/app/db")})
	w.says(err, "")
	_, err = w.parameters.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String("/lab/app/db")})
	w.says(err, "ParameterNotFound")
	_, err = w.parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/lab/app/db")})
	w.says(err, "ParameterNotFound")
}

// tenant-and-database.md §2, Details, SSM: the rules that a program must keep.
func TestParametersHaveTheRulesOfSSM(t *testing.T) {
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
		w.says(err, "ValidationException")
	}
	_, err := w.parameters.PutParameter(ctx, secure(strings.Repeat("/a", 16), "v"))
	w.says(err, "HierarchyLevelLimitExceededException")
	var names []string
	for i := range 11 {
		names = append(names, fmt.Sprint("/lab/", i))
	}
	_, err = w.parameters.GetParameters(ctx, &ssm.GetParametersInput{Names: names})
	w.says(err, "ValidationException")
	_, err = w.parameters.DeleteParameters(ctx, &ssm.DeleteParametersInput{Names: names})
	w.says(err, "ValidationException")
}

// tenant-and-database.md §5: lost answers, refused connections, throttles and read lag; and the journal, which has each attempt and no value.
func TestWhatGoesWrongIsPlannedAndNoted(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, awslab.Options{}), t.Context()
	w.lab.Fail("PutParameter", awslab.Fault{Code: "ThrottlingException"}, awslab.Fault{Refused: true}, awslab.Fault{Lost: true, Resource: "/lab/b"})
	_, err := w.parameters.PutParameter(ctx, secure("/lab/a", "secret-a"))
	w.says(err, "")
	// The answer is lost, the SDK tries again by itself, and hears that it is there.
	_, err = w.parameters.PutParameter(ctx, secure("/lab/b", "secret-b"))
	w.says(err, "ParameterAlreadyExists")
	w.lab.Fail("GetParameter", slices.Repeat([]awslab.Fault{{Code: "AccessDeniedException", Status: 403}}, 2)...)
	for range 2 {
		_, err = w.parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/lab/a")})
		w.says(err, "AccessDeniedException")
	}
	put := func(name, code string) awslab.Call {
		return awslab.Call{Service: "ssm", Action: "PutParameter", Resource: name, Write: true, Code: code}
	}
	get := awslab.Call{Service: "ssm", Action: "GetParameter", Resource: "/lab/a", Code: "AccessDeniedException"}
	want := []awslab.Call{
		put("/lab/a", "ThrottlingException"), put("/lab/a", awslab.CodeRefused), put("/lab/a", ""),
		put("/lab/b", ""), put("/lab/b", "ParameterAlreadyExists"), get, get,
	}
	if diff := cmp.Diff(want, w.lab.Journal()); diff != "" || w.lab.Writes() != 5 || w.lab.Count("GetParameter") != 2 {
		t.Errorf("%d writes in the journal (-want +got):\n%s", w.lab.Writes(), diff)
	}
	w.lab.Forget()
	w.lab.Refuse(true)
	if _, err = w.parameters.PutParameter(ctx, secure("/lab/c", "v")); err == nil {
		t.Error("a refused connection is an answer")
	}
	w.lab.Refuse(false)
	_, err = w.parameters.PutParameter(ctx, secure("/lab/c", "v"))
	w.says(err, "")
	if len(w.lab.Journal()) != 4 {
		t.Errorf("the journal is %v, want three refused attempts and one that succeeds", w.lab.Journal())
	}
}

// tenant-and-database.md §2: reads are not promised to see a write at once; and a deleted name is not free at once.
func TestReadsLagBehindWrites(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, awslab.Options{ReadLag: 100 * time.Millisecond, RecreateAfter: 300 * time.Millisecond}), t.Context()
	_, err := w.parameters.PutParameter(ctx, secure("/lab/a", "v"))
	w.says(err, "")
	get := &ssm.GetParameterInput{Name: aws.String("/lab/a")}
	_, err = w.parameters.GetParameter(ctx, get)
	w.says(err, "ParameterNotFound")
	w.eventually("the read sees it", func() bool { _, err := w.parameters.GetParameter(ctx, get); return err == nil })
	_, err = w.parameters.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: get.Name})
	w.says(err, "")
	_, err = w.parameters.GetParameter(ctx, get)
	w.says(err, "")
	w.lab.Adjust(func(o *awslab.Options) { o.ReadLag = 0 })
	_, err = w.parameters.GetParameter(ctx, get)
	w.says(err, "ParameterNotFound")
	_, err = w.parameters.PutParameter(ctx, secure("/lab/a", "v"))
	w.says(err, "ParameterAlreadyExists")
	w.eventually("the name is free", func() bool { _, err := w.parameters.PutParameter(ctx, secure("/lab/a", "v")); return err == nil })
}

func TestTagsOfAParameterChange(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, awslab.Options{}), t.Context()
	_, err := w.parameters.PutParameter(ctx, secure("/lab/a", "v"))
	w.says(err, "")
	kind, id := types.ResourceTypeForTaggingParameter, aws.String("/lab/a")
	_, err = w.parameters.AddTagsToResource(ctx, &ssm.AddTagsToResourceInput{
		ResourceType: kind, ResourceId: id, Tags: []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}, {Key: aws.String("a"), Value: aws.String("1")}},
	})
	w.says(err, "")
	_, err = w.parameters.RemoveTagsFromResource(ctx, &ssm.RemoveTagsFromResourceInput{ResourceType: kind, ResourceId: id, TagKeys: []string{"b"}})
	w.says(err, "")
	left, err := w.parameters.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: kind, ResourceId: id})
	w.says(err, "")
	found := map[string]string{}
	for _, tag := range left.TagList {
		found[*tag.Key] = *tag.Value
	}
	if !maps.Equal(found, map[string]string{"a": "1"}) {
		t.Errorf("the tags are %v", found)
	}
	_, err = w.parameters.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: kind, ResourceId: aws.String("/none")})
	w.says(err, "InvalidResourceId")
}
