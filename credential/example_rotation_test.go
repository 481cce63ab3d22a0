package credential_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// shopOwner is the object of the examples: an app in the namespace default.
func shopOwner() credential.Owner {
	return credential.Owner{Operator: "apps.example.com", Namespace: "default", Name: "shop"}
}

// shopUser is the database user of the app, in a system in which a user can have two passwords.
func shopUser() credential.User {
	return credential.User{
		Once: credential.Once{
			Store: credential.Secrets{Client: fake.NewClientBuilder().Build(), Namespace: "default"}, Name: "shop-db", Owner: shopOwner(), Username: "shop",
		},
		System: credentialtest.Session{Users: &credentialtest.Users{Room: 2}},
	}
}

// A password is rotated. How long do applications have to read the new one? Twice the default here, because some restart every other day. A password
// that was stolen is rotated in place instead, which leaves no time.
func ExampleUser() {
	for _, stolen := range []bool{false, true} {
		user := shopUser()
		if _, err := user.Converge(context.Background()); err != nil {
			fmt.Println(err)
		}
		user.Request, user.Overlap, user.InPlace = "first-rotation", 2*credential.DefaultOverlap, stolen
		outcome, err := user.Converge(context.Background())
		left := time.Duration(0)
		if !outcome.Until.IsZero() {
			left = time.Until(outcome.Until).Round(time.Hour)
		}
		fmt.Println("generation", outcome.Generation, "stolen:", stolen, "the old password works for", left, err)
	}
	// Output:
	// generation 2 stolen: false the old password works for 48h0m0s <nil>
	// generation 2 stolen: true the old password works for 0s <nil>
}

// A password was stolen, and so were those of other apps. All are revoked before the first new one is published: Revoke tries no login, which a thief
// could delay, and Converge then does the rest.
func ExampleUser_Revoke() {
	system := credentialtest.Session{Users: &credentialtest.Users{Room: 1}}
	user := shopUser()
	user.System = system
	stolen, err := user.Converge(context.Background())
	if err != nil {
		fmt.Println(err)
	}
	user.Request, user.InPlace = "stolen", true
	err = user.Revoke(context.Background())
	fmt.Println("the stolen password is accepted:", system.Accepts(stolen.Record), err)
	outcome, err := user.Converge(context.Background())
	fmt.Println("readers get generation", outcome.Generation, err)
	// Output:
	// the stolen password is accepted: false <nil>
	// readers get generation 2 <nil>
}

// A dashboard shows until when the previous password of an app is accepted. It reads the store, and asks no other system.
func ExampleRecord() {
	previousUntil := func(found credential.Found) time.Time {
		overlap := found.Records[len(found.Records)-1].Overlap
		if overlap == credential.NoOverlap { // Rotated in place.
			return found.Since
		}
		return found.Since.Add(overlap)
	}
	published := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) // As Store.Read returns it.
	for _, overlap := range []time.Duration{time.Hour, credential.NoOverlap} {
		fmt.Println(previousUntil(credential.Found{Since: published, Records: []credential.Record{{Generation: 2, Overlap: overlap}}}).Format(time.DateTime))
	}
	// Output:
	// 2026-03-01 13:00:00
	// 2026-03-01 12:00:00
}

// Which rotation does the password of an app come from, and how old is it? A person or a program that may read the Secret finds that beside the
// password.
func ExampleSecrets() {
	ctx, api := context.Background(), fake.NewClientBuilder().Build()
	store := credential.Secrets{Client: api, Namespace: "default"}
	record := credential.Record{
		Username: "shop", Password: credential.NewPassword("of spring"), Generation: 2, Request: "spring",
		Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Overlap: 36 * time.Hour,
	}
	if err := store.Create(ctx, "shop-db", shopOwner(), record); err != nil { // Ensure and Converge do this.
		fmt.Println(err)
	}
	if err := store.Publish(ctx, "shop-db", shopOwner(), record); err != nil {
		fmt.Println(err)
	}
	var secret corev1.Secret
	if err := api.Get(ctx, client.ObjectKey{Namespace: "default", Name: "shop-db"}, &secret); err != nil {
		fmt.Println(err)
	}
	for _, key := range []string{credential.UsernameKey, credential.RequestKey, credential.CreatedKey, credential.OverlapKey} {
		fmt.Printf("%s: %s\n", key, secret.Data[key])
	}
	// Output:
	// username: shop
	// request: spring
	// created: 2026-03-01T12:00:00Z
	// overlap: 36h0m0s
}

// A configuration file gets a password. How is a forgotten Reveal noticed before an application gets the file? A Password that is printed shows
// itself redacted, so the file must not contain that text.
func ExamplePassword() {
	render := func(password any) (string, error) {
		file := fmt.Sprintf("user=shop password=%v", password)
		if strings.Contains(file, credential.Redacted) {
			return "", fmt.Errorf("the file contains %s instead of a password: call Reveal", credential.Redacted)
		}
		return file, nil
	}
	password := credential.NewPassword("of spring")
	fmt.Println(render(password))
	fmt.Println(render(password.Reveal()))
	// Output:
	//  the file contains *** instead of a password: call Reveal
	// user=shop password=of spring <nil>
}
