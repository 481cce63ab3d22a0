package ssm_test

import (
	"fmt"

	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential/ssm"
)

// Two operators work in one account, and each has two stores. How do they stay below the quotas of the account together? Each operator takes half of
// the default rates, and its stores share one Limits.
func ExampleNewLimits() {
	client := awsssm.NewFromConfig(awslab.Config("http://localhost")) // An operator uses config.LoadDefaultConfig of the SDK.
	limits := ssm.NewLimits(ssm.DefaultReads/2.0, ssm.DefaultWrites/2.0)
	for _, prefix := range []string{"/tenants", "/apps"} {
		store, err := ssm.New(ssm.Options{Client: client, Prefix: prefix, Limits: limits})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(store.Path("shop/db"))
	}
	// Output:
	// /tenants/shop/db
	// /apps/shop/db
}
