package main

import (
	"path/filepath"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Who does not answer is unknown, and not waited for without end. The SDK sets no limit of its own.
func TestAWSHasSoLongForAnAnswer(t *testing.T) {
	t.Parallel()
	account, err := awsConfig(t.Context(), "eu-central-1")
	if err != nil {
		t.Fatal(err)
	}
	guarded, is := account.HTTPClient.(*guardedClient)
	if !is {
		t.Fatalf("the client is a %T", account.HTTPClient)
	}
	if client, is := guarded.next.(*awshttp.BuildableClient); !is || client.GetTimeout() != awsTimeout {
		t.Errorf("the client is a %T", guarded.next)
	}
}

// The error of a process without an AWS identity contains the remedy.
func TestWhoHasNoIdentityInAWSIsToldWhatToDo(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	nowhere := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	account, err := awsConfig(t.Context(), "eu-central-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := account.Credentials.Retrieve(t.Context()); err == nil || !strings.Contains(err.Error(), "annotate its ServiceAccount for IRSA") {
		t.Errorf("it says: %v", err)
	}
}
