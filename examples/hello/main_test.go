package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/einmal-operators/einmal/einmaltest"
)

// longest is how many lines the first operator of a newcomer may have.
const longest = 40

// TestMain makes the test binary act as the operator if its first argument is a command, which saves linking the operator.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	m.Run()
}

func TestTheFirstOperatorIsShort(t *testing.T) {
	text, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines > longest {
		t.Errorf("it has %d lines, want at most %d", lines, longest)
	}
}

// The operator of the README runs as it is printed: it brings its definition, greets, greets again under a new
// name, and no more often than that.
func TestTheOperatorRunsAsPrinted(t *testing.T) {
	ctrllog.SetLogger(logr.Discard()) // Otherwise controller-runtime warns about a missing logger.
	c := einmaltest.SharedCluster(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := exec.CommandContext(t.Context(), program, "crds").Output()
	if err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, string(definitions), "apply", "-f", "-")
	c.Kubectl(t, string(definitions), "wait", "--for=condition=Established", "-f", "-")
	c.DeleteAllAtEnd(t, &corev1.ConfigMapList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": "world"})
	c.DeleteAllAtEnd(t, hellos())
	c.ApplyFolders(t, "config/rbac")
	running := c.Run(t, program, c.ServiceAccount(t, "hello-system", "hello"), "--state-namespace", "hello-system")
	c.ApplyFolders(t, "config/samples")
	greeted := func(want string) {
		t.Helper()
		einmaltest.Eventually(t, "the greeting is "+want, func(ctx context.Context) error {
			var greeting corev1.ConfigMap
			err := c.Get(ctx, types.NamespacedName{Namespace: "default", Name: "world"}, &greeting)
			if err == nil && greeting.Data["greeting"] != want {
				err = fmt.Errorf("it is %q", greeting.Data["greeting"])
			}
			return err
		})
	}
	greeted("Hello, World!")
	c.Kubectl(t, "", "patch", "hello", "world", "--type=merge", "-p", `{"spec":{"name":"Kubernetes"}}`)
	greeted("Hello, Kubernetes!")
	running.AwaitLog(t, "handler=greet-again")
	if text := c.Kubectl(t, "", "get", "hello", "world", "-o", "jsonpath={.status.greeting}"); text != "Hello, Kubernetes!" {
		t.Errorf("the status says %q", text)
	}
	running.Stop(t)
	again := c.Run(t, program, c.ServiceAccount(t, "hello-system", "hello"), "--state-namespace", "hello-system")
	again.AwaitLog(t, "all objects are up to date")
}

// hellos is an empty list of the operator's kind.
func hellos() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("example.com/v1")
	list.SetKind("HelloList")
	return list
}
