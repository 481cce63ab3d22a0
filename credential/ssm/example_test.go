package ssm_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
)

// A password is generated once, whatever calls repeat, and is stored in SSM before it is returned.
func Example() {
	// An operator uses config.LoadDefaultConfig of the SDK instead of an emulator.
	lab := awslab.New(awslab.Options{})
	server := httptest.NewServer(lab)
	defer server.Close()
	client := awsssm.NewFromConfig(awslab.Config(server.URL))

	store, err := ssm.New(ssm.Options{Client: client, Prefix: "/tenants", Tags: map[string]string{"managed-by": "einmal"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	once := credential.Once{
		Store: store, Name: "acme/shop/db", Username: "t_acme_shop",
		Owner: credential.Owner{Operator: "tenants.example.com", Name: "acme/shop"},
	}
	first, _ := once.Ensure(context.Background())
	again, err := once.Ensure(context.Background())
	fmt.Println(store.Path(once.Name), first == again, first.Password, err)
	for _, call := range lab.Journal() {
		if call.Write {
			fmt.Println(call.Action, call.Resource)
		}
	}
	// Output:
	// /tenants/acme/shop/db true *** <nil>
	// PutParameter /tenants/acme/shop/db/g1
	// PutParameter /tenants/acme/shop/db
}
