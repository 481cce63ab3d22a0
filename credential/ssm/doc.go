// Package ssm keeps credentials in the Parameter Store of AWS Systems Manager, as SecureStrings. It is a credential.Store.
//
// Under a name, such as /tenants/acme/shop/db with the prefix /tenants, there are the parameter of the name itself, which readers use, and
// one for each generation: /tenants/acme/shop/db/g1 and so on. The value of each is one JSON text:
//
//	{"v":1,"owner":"…","username":"…","password":"…","generation":1,"request":"…","created":"2026-01-02T03:04:05Z"}
//
// A generation is created and never overwritten. The parameter for readers is overwritten, where its value carries the owner's mark.
//
// # Rights
//
// The operator's role needs ssm:GetParameters, ssm:PutParameter, ssm:DeleteParameter and, with tags, ssm:AddTagsToResource, on
// arn:aws:ssm:REGION:ACCOUNT:parameter/PREFIX/* and nothing else, and kms:Encrypt and kms:Decrypt on the key. Nobody else should have
// ssm:PutParameter there: whoever may write below the prefix can lock applications out. An application needs ssm:GetParameter on its own
// parameter and kms:Decrypt.
//
// # What SSM does not promise
//
// It has no conditional overwrite and no conditional delete, so between the look at a parameter's mark and the write another could be
// written over; that is why generations are only ever created. It asks to wait 30 seconds between deleting a name and creating it again:
// until then a creation may fail, and a read may show nothing, which a caller that calls again outlasts. Its reads may be behind its
// writes; nothing here takes a read for the truth where that could replace a password.
//
// # A real account
//
// The tests run against an emulator of the wire. With EINMAL_AWS_TESTS=1 and EINMAL_AWS_PREFIX=/some/path they also run against the account
// that the usual AWS environment names, create parameters of random names below that path, and delete them.
package ssm
