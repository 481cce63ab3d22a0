package main

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// labPrefix is where credentials are kept in the emulator's SSM.
const labPrefix = "/einmal/test"

// startLab is a stage whose cache is an ElastiCache and whose store is SSM, as the emulator plays them: users take a moment to be there, and are
// written onto the real Redis.
func startLab(t *testing.T, options awslab.Options) *stage {
	t.Helper()
	s := startStage(t)
	admin := s.redis.Admin()
	t.Cleanup(func() { _ = admin.Close() })
	options.Cache = admin
	s.lab = awslab.New(options)
	t.Cleanup(s.lab.Close)
	s.lab.AddGroup("tenants")
	server := httptest.NewServer(s.lab)
	t.Cleanup(server.Close)
	s.backend = "aws"
	backend := &v1.TenantBackend{ObjectMeta: metav1.ObjectMeta{Name: s.backend}, Spec: s.local().Spec}
	backend.Spec.Cache = &v1.CacheBackend{Kind: v1.CacheElastiCache, ElastiCache: &v1.ElastiCache{
		Region: "eu-central-1", Endpoint: s.redis.Address(), UserGroupIDs: []string{"tenants"}, Insecure: true, APIEndpoint: server.URL,
	}}
	backend.Spec.Store = v1.StoreBackend{Kind: v1.StoreSSM, SSM: &v1.SSMStore{Region: "eu-central-1", Prefix: labPrefix, APIEndpoint: server.URL}}
	s.make(t, backend)
	s.parameters = awsssm.NewFromConfig(awslab.Config(server.URL))
	return s
}

// settling is an AWS where users take a moment.
func settling() awslab.Options {
	const moment = 300 * time.Millisecond
	return awslab.Options{Users: moment, Groups: moment}
}

// parameter is the credential that readers of a parameter get.
func (s *stage) parameter(t *testing.T, name string) credential.Record {
	t.Helper()
	found, err := s.parameters.GetParameter(t.Context(), &awsssm.GetParameterInput{Name: &name, WithDecryption: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	var value struct {
		Username   string `json:"username"`
		Password   string `json:"password"`
		Generation int    `json:"generation"`
	}
	if err := json.Unmarshal([]byte(*found.Parameter.Value), &value); err != nil {
		t.Fatalf("the parameter %s is no JSON", name)
	}
	return credential.Record{Username: value.Username, Password: credential.NewPassword(value.Password), Generation: value.Generation}
}
