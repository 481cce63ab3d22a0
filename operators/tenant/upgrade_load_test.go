package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscache "github.com/aws/aws-sdk-go-v2/service/elasticache"
	cachetypes "github.com/aws/aws-sdk-go-v2/service/elasticache/types"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// earlier is what an earlier release has left. See testdata/upgrade/README.md.
type earlier struct {
	secrets    []*corev1.Secret
	tenants    []*v1.Tenant
	backends   []*v1.TenantBackend
	parameters []earlierParameter
}

type earlierParameter struct{ Name, Type, Value string }

// loadEarlier puts what an earlier release has left in a folder into the servers of a stage with an AWS.
func (s *stage) loadEarlier(t *testing.T, folder string) earlier {
	t.Helper()
	for _, name := range []string{"local", "aws"} {
		backend := &v1.TenantBackend{}
		backend.Name = name
		if err := s.Delete(t.Context(), backend); err != nil {
			t.Fatal(err)
		}
	}
	s.loadPostgres(t, filepath.Join(folder, "postgres.sql"))
	s.loadRedis(t, filepath.Join(folder, "redis.acl"))
	found := earlier{parameters: s.loadAWS(t, filepath.Join(folder, "aws.json"))}
	found.readObjects(t, filepath.Join(folder, "objects.json"))
	s.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}})
	s.Kubectl(t, fmt.Sprintf(elsewhere, "credentials"), "apply", "-f", "-") // The release could reach the Secrets of all namespaces.
	for _, secret := range found.secrets {
		if secret.Data[credential.PublishedKey] != nil {
			secret.Data[credential.PublishedKey] = []byte(time.Now().UTC().Format(time.RFC3339))
		}
		s.make(t, secret.DeepCopy())
	}
	for _, backend := range found.backends {
		if of := backend.Spec.Cache.Redis; of != nil {
			of.Nodes = []string{s.redis.Address()}
		}
		if of := backend.Spec.Cache.ElastiCache; of != nil {
			of.Endpoint, of.APIEndpoint = s.redis.Address(), *s.parameters.Options().BaseEndpoint
			backend.Spec.Store.SSM.APIEndpoint = of.APIEndpoint
		}
		s.makeWithStatus(t, backend)
	}
	for _, tenant := range found.tenants {
		s.makeWithStatus(t, tenant)
	}
	return found
}

func (e *earlier) readObjects(t *testing.T, path string) {
	t.Helper()
	var all []json.RawMessage
	readJSON(t, path, &all)
	for _, text := range all {
		var kind struct{ Kind string }
		var object client.Object
		decode(t, text, &kind)
		switch kind.Kind {
		case "Secret":
			e.secrets = append(e.secrets, &corev1.Secret{})
			object = e.secrets[len(e.secrets)-1]
		case "Tenant":
			e.tenants = append(e.tenants, &v1.Tenant{})
			object = e.tenants[len(e.tenants)-1]
		case "TenantBackend":
			e.backends = append(e.backends, &v1.TenantBackend{})
			object = e.backends[len(e.backends)-1]
		default:
			t.Fatalf("%s has a %s", path, kind.Kind)
		}
		decode(t, text, object)
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, into)
}

// makeWithStatus makes an object with the status and the annotations that it had, in which its new uid takes the place of the old one.
func (s *stage) makeWithStatus(t *testing.T, object client.Object) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	was := string(object.GetUID())
	object.SetUID("")
	s.make(t, object)
	uid, version := object.GetUID(), object.GetResourceVersion()
	decode(t, []byte(strings.ReplaceAll(string(text), was, string(uid))), object)
	object.SetResourceVersion(version)
	if err := s.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// loadPostgres runs a dump as psql does: a connection for each database.
func (s *stage) loadPostgres(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const connect = `\connect -reuse-previous=on "dbname='`
	for i, part := range strings.Split(string(text), connect) {
		database := "postgres"
		if i > 0 {
			database, part, _ = strings.Cut(part, `'"`)
		}
		dsn, err := url.Parse(s.postgres.DSN())
		if err != nil {
			t.Fatal(err)
		}
		dsn.Path = "/" + database
		s.runDump(t, dsn.String(), part)
	}
}

func (s *stage) runDump(t *testing.T, dsn, part string) {
	t.Helper()
	var kept strings.Builder
	for line := range strings.Lines(part) {
		if !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, `\`) {
			kept.WriteString(line)
		}
	}
	session, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(t.Context()) }()
	for statement := range strings.SplitSeq(kept.String(), ";\n") {
		if _, err := session.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// loadRedis makes the users of a file of ACLs.
func (s *stage) loadRedis(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	admin := s.redis.Admin()
	defer func() { _ = admin.Close() }()
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		command := []any{"ACL", "SETUSER", words[1], "reset"}
		for _, rule := range words[2:] {
			command = append(command, rule)
		}
		if err := admin.Do(t.Context(), command...).Err(); err != nil {
			t.Fatalf("the user %s: %v", words[1], err)
		}
	}
}

// loadAWS makes parameters, users and user groups.
func (s *stage) loadAWS(t *testing.T, path string) []earlierParameter { //nolint:gocognit // One story, told row by row.
	t.Helper()
	var kept struct {
		Parameters []earlierParameter
		Users      []struct {
			ID, Name, Engine, Access string
			Passwords                []string
			Tags                     map[string]string
		}
		Groups map[string][]string
	}
	readJSON(t, path, &kept)
	for _, one := range kept.Parameters {
		made := &awsssm.PutParameterInput{Name: &one.Name, Type: ssmtypes.ParameterType(one.Type), Value: &one.Value}
		if _, err := s.parameters.PutParameter(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	caches := awscache.NewFromConfig(awslab.Config(*s.parameters.Options().BaseEndpoint))
	for _, one := range kept.Users {
		made := &awscache.CreateUserInput{
			UserId: &one.ID, UserName: &one.Name, Engine: &one.Engine, AccessString: &one.Access, Passwords: one.Passwords,
		}
		for key, value := range one.Tags {
			made.Tags = append(made.Tags, cachetypes.Tag{Key: aws.String(key), Value: aws.String(value)})
		}
		if _, err := caches.CreateUser(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	for group, members := range kept.Groups {
		joins := &awscache.ModifyUserGroupInput{UserGroupId: aws.String(group)}
		for _, member := range members {
			if member != "default" {
				joins.UserIdsToAdd = append(joins.UserIdsToAdd, member)
			}
		}
		if _, err := caches.ModifyUserGroup(t.Context(), joins); err != nil {
			t.Fatal(err)
		}
	}
	return kept.Parameters
}
