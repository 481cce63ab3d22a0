// Command operator is a small operator for the tests of einmal that uses only client-go. It prints a line for each new
// Greeting.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/einmal-operators/einmal/cmd/einmal/testdata/operator/word"
)

//go:embed crds.yaml
var crds string

func main() {
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	switch verb {
	case "crds":
		fmt.Print(crds)
	case "version":
		fmt.Println("test")
	case "run":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		if err := run(ctx, os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "failed:", err)
			os.Exit(1)
		}
		fmt.Println("goodbye")
	default:
		fmt.Fprintln(os.Stderr, "usage: operator run|crds|version")
		os.Exit(2)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig file")
	crash := flags.String("crash-once", "", "crash unless this file exists, and create it")
	linger := flags.Duration("linger", 0, "how long to wait before exiting")
	_ = flags.String("health-probe-bind-address", "", "unused")
	_ = flags.String("metrics-bind-address", "", "unused")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := os.Stat(*crash); *crash != "" && err != nil {
		if err := os.WriteFile(*crash, nil, 0o600); err != nil {
			return err
		}
		os.Exit(3)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	if err := introduce(ctx, config); err != nil {
		return err
	}
	err = greet(ctx, config)
	time.Sleep(*linger)
	return err
}

func introduce(ctx context.Context, config *rest.Config) error {
	client, err := authentication.NewForConfig(config)
	if err != nil {
		return err
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("I am", review.Status.UserInfo.Username)
	fmt.Println("my server is", config.Host)
	return nil
}

func greet(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	greetings := client.Resource(schema.GroupVersionResource{Group: "test.einmal.dev", Version: "v1", Resource: "greetings"})
	events, err := greetings.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-events.ResultChan():
			if !ok {
				return fmt.Errorf("watch greetings: the server closed the watch")
			}
			if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == watch.Added {
				fmt.Printf("%s, %s\n", word.Word(), object.GetName())
			}
		}
	}
}
