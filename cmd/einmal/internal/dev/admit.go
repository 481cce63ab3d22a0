package dev

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/consent"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/identity"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/manifest"
)

// admit returns an error unless the cluster may be changed. Before the first change of a foreign cluster, it prints what
// will be applied and what will stay, and asks for confirmation.
func (s *session) admit(ctx context.Context, objects []manifest.Object, account identity.Account) error {
	if err := s.target.Verify(ctx); err != nil {
		return err
	}
	if s.admitted || !s.access().foreign() {
		return nil
	}
	s.dev.Printf("%s", s.describe(ctx, objects, account))
	err := consent.Ask(ctx, consent.Question{
		Cluster: s.target.Cluster, Option: consent.Flag + " " + cluster.Quote(s.target.Cluster), Given: s.options.YesApplyTo,
		Terminal: s.options.Terminal, In: s.options.Stdin, Prompt: s.screen.Prompt,
	})
	if err != nil {
		return err
	}
	s.admitted = true
	s.printKubeconfig()
	return nil
}

// describe returns the message about which cluster will be changed, and how.
func (s *session) describe(ctx context.Context, objects []manifest.Object, account identity.Account) string {
	var text strings.Builder
	fmt.Fprintf(&text, "this cluster is not a devcluster that einmal dev started:\n")
	fmt.Fprintf(&text, "  cluster     %s\n", s.target.Cluster)
	fmt.Fprintf(&text, "  context     %s (kubeconfig %s)\n", s.target.Context, s.target.Path)
	fmt.Fprintf(&text, "  server      %s\n", s.target.Config.Host)
	fmt.Fprintf(&text, "  namespaces  %s\n", s.target.Namespaces(ctx))
	fmt.Fprintf(&text, "einmal dev will apply to it, now and after each change of the sources:\n")
	ordered := slices.Concat(objects, s.extras)
	manifest.Sort(ordered)
	for _, object := range ordered {
		state := "exists, will be changed"
		if s.apply.IsNew(ctx, object) {
			state = "new"
		}
		fmt.Fprintf(&text, "  %s (%s)\n", object.Name(), state)
	}
	fmt.Fprintf(&text, "and run the operator in it as %s\n", account.User())
	if s.options.CleanUp {
		fmt.Fprintf(&text, "at the end, --clean-up deletes the objects that this run created; changes to objects that existed before stay,\n"+
			"including those made by the operator")
	} else {
		fmt.Fprintf(&text, "these objects and everything that the operator writes stay in the cluster when einmal dev ends;\n"+
			"at the end, einmal dev prints commands that delete the objects it created")
	}
	return text.String()
}
