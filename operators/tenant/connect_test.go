package main

import (
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// tenant-and-database.md §2, Reconcile 2: who does not answer is unknown, and not waited for without end. The SDK sets no limit of its own.
func TestAWSHasSoLongForAnAnswer(t *testing.T) {
	t.Parallel()
	account, err := awsConfig(t.Context(), "eu-central-1")
	if err != nil {
		t.Fatal(err)
	}
	if client, is := account.HTTPClient.(*awshttp.BuildableClient); !is || client.GetTimeout() != awsTimeout {
		t.Errorf("the client is a %T", account.HTTPClient)
	}
}
