package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
)

// withFlags is an operator with flags of its own.
func withFlags(declare func(*flag.FlagSet), options ...einmal.OperatorOption) *einmal.Operator {
	op := einmal.New("op.example.com", append(options, einmal.Flags(declare))...)
	einmal.For[corev1.ConfigMap](op).OnCreate("x", func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil })
	return op
}

// Flags of the author belong to the command run. A flag comes before its environment variable, and that before the default.
func TestAnOperatorHasFlagsOfItsOwn(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "kubeconfig")
	for name, test := range map[string]struct {
		variable string
		args     []string
		want     string
	}{
		"default":            {"", nil, "http://localhost"},
		"variable":           {"http://variable", nil, "http://variable"},
		"flag":               {"", []string{"--registrar-url", "http://flag"}, "http://flag"},
		"flag over variable": {"http://variable", []string{"--registrar-url=http://flag"}, "http://flag"},
		"empty flag":         {"http://variable", []string{"--registrar-url="}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("EINMAL_REGISTRAR_URL", test.variable)
			var url string
			op := withFlags(func(set *flag.FlagSet) {
				set.StringVar(&url, "registrar-url", "http://localhost", "`URL` of the registrar")
			})
			var out, failures strings.Builder
			command(t, op, append([]string{"run", "--kubeconfig", nowhere}, test.args...), &out, &failures)
			if url != test.want {
				t.Errorf("the URL is %q, want %q", url, test.want)
			}
		})
	}
	var out, failures strings.Builder
	op := withFlags(func(set *flag.FlagSet) {
		set.Bool("dry", false, "change nothing outside of the cluster")
		set.Int("batch", 7, "how many at a time")
	})
	if code := command(t, op, []string{"run", "--help"}, &out, &failures); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"  -dry\n    \tchange nothing outside of the cluster\n", "  -batch int\n    \thow many at a time (default 7)\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("help does not contain %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "panic") {
		t.Errorf("help:\n%s", &out)
	}
}

// A wrong value names the flag or the environment variable that it comes from. A flag that clashes with one of Einmal's is an error.
func TestWrongFlagsNameWhereTheyComeFrom(t *testing.T) {
	number := func(set *flag.FlagSet) { set.Int("batch", 1, "") }
	for name, test := range map[string]struct {
		declare  func(*flag.FlagSet)
		variable [2]string
		args     []string
		code     int
		says     string
	}{
		"own variable":   {number, [2]string{"EINMAL_BATCH", "many"}, nil, 2, `invalid value "many" of the environment variable EINMAL_BATCH: parse error`},
		"our variable":   {number, [2]string{"EINMAL_LOG_FORMAT", "xml"}, nil, 2, `invalid value "xml" of the environment variable EINMAL_LOG_FORMAT: must be text or json`},
		"flag":           {number, [2]string{"EINMAL_LOG_FORMAT", "json"}, []string{"--log-format", "xml"}, 2, `invalid value "xml" for flag -log-format`},
		"clash":          {func(set *flag.FlagSet) { set.String("context", "", "") }, [2]string{}, nil, 1, "option Flags: flag -context is one of Einmal's own"},
		"declared twice": {func(set *flag.FlagSet) { number(set); number(set) }, [2]string{}, nil, 1, "option Flags: run flag redefined: batch"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.variable[0] != "" {
				t.Setenv(test.variable[0], test.variable[1])
			}
			var out, failures strings.Builder
			if code := command(t, withFlags(test.declare), append([]string{"run"}, test.args...), &out, &failures); code != test.code || !strings.Contains(failures.String(), test.says) {
				t.Errorf("exit code %d, says %s", code, &failures)
			}
		})
	}
}

// Main logs to the logger of the option Logger, and refuses the flags that would describe another one.
func TestMainKeepsTheLoggerOfTheAuthor(t *testing.T) {
	var log bytes.Buffer
	op := withFlags(func(*flag.FlagSet) {}, einmal.Logger(slog.New(slog.NewJSONHandler(&log, nil)).With("team", "platform")))
	op.OnStartup("licence", func(context.Context, client.Client) error { return errors.New("the licence has expired") })
	var out, failures strings.Builder
	if code := command(t, op, []string{"run", "--log-level", "debug"}, &out, &failures); code != 2 || !strings.Contains(failures.String(), "a logger of its own") {
		t.Errorf("exit code %d, says %s", code, &failures)
	}
	failures.Reset()
	if code := command(t, op, unreachable(t), &out, &failures); code != 1 || failures.Len() > 0 {
		t.Errorf("exit code %d, says %s", code, &failures)
	}
	if !strings.Contains(log.String(), `"msg":"the operator failed","team":"platform"`) {
		t.Errorf("logged %q", &log)
	}
}
