package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticache"

	"github.com/einmal-operators/einmal/awslab"
)

func TestRunServesGroupsAndJournal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--listen", "127.0.0.1:0", "--groups", "one,two", "--settle", "0s"}, writer)
	}()
	line := make([]byte, 200)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	groups, err := elasticache.NewFromConfig(awslab.Config(url)).DescribeUserGroups(ctx, &elasticache.DescribeUserGroupsInput{})
	if err != nil || len(groups.UserGroups) != 2 || aws.ToString(groups.UserGroups[1].UserGroupId) != "two" {
		t.Errorf("groups %+v, error %v, want one and two", groups, err)
	}
	if shown := get(t, url); !strings.Contains(shown, `"Action":"DescribeUserGroups"`) {
		t.Errorf("the journal lacks DescribeUserGroups: %s", shown)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestErrorsNameTheFlag(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--redis", "nowhere"}, {"--settle", "long"}, {"--listen", "nowhere"}} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(args[0], "--")) {
			t.Errorf("%v: error %v does not name the flag", args, err)
		}
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-settle") {
		t.Errorf("--help: error %v, output %s", err, help.String())
	}
}
