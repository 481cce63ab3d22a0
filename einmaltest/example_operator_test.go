package einmaltest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// certificateSpec is what the user asks for.
type certificateSpec struct {
	Domain string `json:"domain,omitempty"`
}

// certificateStatus is what the operator got.
type certificateStatus struct {
	einmal.Records `json:",inline"`

	Serial  string       `json:"serial,omitempty"`
	Expires *metav1.Time `json:"expires,omitempty"`
	Checked *metav1.Time `json:"checked,omitempty"`
}

// certificate is the kind of the examples. Its operator gets certificates from an authority outside of the cluster.
type certificate = einmal.Resource[certificateSpec, certificateStatus]

// newCertificate is what a user creates.
func newCertificate() *certificate {
	return &certificate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Spec: certificateSpec{Domain: "one.example.com"},
	}
}

// document is what the authority issues.
type document struct {
	Domain  string      `json:"domain"`
	Serial  string      `json:"serial"`
	Expires metav1.Time `json:"expires"`
}

// authority is a fake of the authority: it issues one document for each token, however often it is asked. Serial numbers count for each domain, so
// that they do not depend on which object is handled first.
type authority struct {
	made    map[string]document
	serials map[string]int
	revoked map[string]bool
	// refusals is how many requests it refuses from now on.
	refusals int
}

// validity is how long a document is valid.
const validity = 90 * 24 * time.Hour

func newAuthority() *authority {
	return &authority{made: map[string]document{}, serials: map[string]int{}, revoked: map[string]bool{}}
}

// valid returns how many documents are issued and not revoked.
func (a *authority) valid() int {
	valid := 0
	for _, one := range a.made {
		if !a.revoked[one.Domain] {
			valid++
		}
	}
	return valid
}

var errRefused = errors.New("the authority refuses the request")

// session is the authority as one process of the operator reaches it. Each call is an effect of the process, so that Explore can disturb it.
type session struct {
	*authority
	process *einmaltest.Process
}

// issue returns the document of a token. A repeated call changes nothing, so it is an idempotent effect.
func (s session) issue(domain, token string) (document, error) {
	var given document
	err := s.process.IdempotentEffect("issue "+domain, func() (any, error) {
		if s.refusals > 0 {
			s.refusals--
			return nil, errRefused
		}
		if _, known := s.made[token]; !known {
			s.serials[domain]++
			serial := fmt.Sprintf("%s/%d", domain, s.serials[domain])
			s.made[token] = document{Domain: domain, Serial: serial, Expires: metav1.NewTime(time.Now().Add(validity))}
		}
		given = s.made[token]
		return given.Serial, nil
	})
	return given, err
}

// revoke takes all documents of a domain back. The operator may not know them: an object can be deleted after a crash, before it has a status.
func (s session) revoke(domain string) error {
	return s.process.IdempotentEffect("revoke "+domain, func() (any, error) {
		s.revoked[domain] = true
		return nil, nil
	})
}

// issuer is what the handlers need of the authority.
type issuer interface {
	issue(domain, token string) (document, error)
	revoke(domain string) error
}

// issueFrom returns the handler that gets a certificate. The token is the same after a crash, so the authority issues one document.
func issueFrom(from issuer) einmal.HandlerFunc[certificate] {
	return func(ctx context.Context, c *einmal.Change[certificate]) error {
		made, err := einmal.Effect(ctx, c, "document", einmal.RecoverByKey(func(_ context.Context, token string) (document, error) {
			return from.issue(c.Object.Spec.Domain, token)
		}))
		if err != nil {
			return err
		}
		c.Object.Status.Serial, c.Object.Status.Expires = made.Serial, &made.Expires
		return nil
	}
}

// certificates declares the operator.
func certificates(of issuer) *einmal.Operator {
	op := einmal.New("certificates.example.com", einmal.StateNamespace("default"))
	kind := einmal.For[certificate](op, einmal.GVK("example.com", "v1", "Certificate"))
	kind.OnCreate("issue", issueFrom(of))
	kind.OnDelete("revoke", func(_ context.Context, c *einmal.Change[certificate]) error {
		return of.revoke(c.Object.Spec.Domain)
	})
	kind.Timer("check", time.Hour, func(_ context.Context, c *einmal.Change[certificate]) error {
		now := metav1.Now()
		c.Object.Status.Checked = &now
		return nil
	})
	return op
}

// issued is a scenario: the operator gets a certificate from the authority.
func issued(w *einmaltest.World) {
	outside := newAuthority()
	w.Start(func(p *einmaltest.Process) *einmal.Operator { return certificates(session{outside, p}) })
	w.Create(newCertificate())
	w.Advance(10 * time.Minute)
	w.Outcome("valid", outside.valid())
}
