// Package ssm keeps credentials in the Parameter Store of AWS Systems Manager, as SecureStrings. It is a credential.Store.
//
// A credential has several parameters. With the prefix /tenants and the name acme/shop/db, /tenants/acme/shop/db is the copy for readers, and
// /tenants/acme/shop/db/g1 and so on are the generations. The value of each is one JSON text:
//
//	{"v":1,"owner":"…","username":"…","password":"…","generation":1,"request":"…","created":"2026-01-02T03:04:05Z"}
//
// The Store never overwrites a generation. It overwrites the copy for readers only if its value has the owner's mark.
//
// # Permissions
//
// The operator's role needs ssm:GetParameters, ssm:PutParameter, ssm:DeleteParameter and, with tags, ssm:AddTagsToResource, on
// arn:aws:ssm:REGION:ACCOUNT:parameter/PREFIX/* and nothing else, and kms:Encrypt and kms:Decrypt on the key. Store.Below also needs
// ssm:GetParametersByPath. Grant ssm:PutParameter there only to the operator: a writer below the prefix can lock applications out. An
// application needs ssm:GetParameter on its own parameter, and kms:Decrypt.
//
// # What SSM does not guarantee
//
//   - SSM has no conditional overwrite and no conditional delete. After the Store has read a parameter's mark, another writer can change the
//     parameter before the Store writes it. Therefore the Store only creates generations.
//   - AWS requires a wait of 30 seconds between the deletion of a parameter and its next creation. Until then, a creation can fail, and a read
//     can return nothing. Call again later.
//   - Reads can be older than writes. The Store does not rely on a read where that could replace a password.
//
// # A real account
//
// The tests use an emulator of the AWS API. With EINMAL_AWS_TESTS=1 and EINMAL_AWS_PREFIX=/some/path they also use the account of the usual
// AWS environment. They create parameters with random names below that path, and delete them.
package ssm
