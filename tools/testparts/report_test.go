package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// after returns a runner that has run the part fast, whose budget is 100 CPU seconds.
func after(seconds float64, outcomes ...outcome) *runner {
	used := duration{cpu: time.Duration(seconds * float64(time.Second))}
	return &runner{
		list:    list{budgets: map[string]int{"fast": 100}},
		builder: &builder{},
		began:   time.Now(),
		results: map[string]*result{"fast": {part: "fast", used: used, outcomes: outcomes}},
	}
}

func TestAPartThatUsesMuchMoreThanItsBudgetWarns(t *testing.T) {
	slow := outcome{folder: "one", slow: []timedTest{{"one", "TestSlow", 50 * time.Second}}}
	for seconds, want := range map[float64]bool{120: false, 121: true, 500: true} {
		var printed bytes.Buffer
		if err := after(seconds, slow).report(&printed, []part{partNamed(t, "fast")}, 0); err != nil {
			t.Errorf("%v CPU seconds: got error %v, want none", seconds, err)
		}
		if warns := strings.Contains(printed.String(), "Warning: fast used") && strings.Contains(printed.String(), "50.0s  one  TestSlow"); warns != want {
			t.Errorf("%v CPU seconds: warning with the slowest test: %v, want %v:\n%s", seconds, warns, want, printed.String())
		}
	}
}

func TestAFailedPackageFailsTheRunAndTestsAreCounted(t *testing.T) {
	var printed bytes.Buffer
	err := after(1, outcome{folder: "one", passed: 2, skipped: 1}, outcome{folder: "two", failed: 1, err: errors.New("exit status 1")}).
		report(&printed, []part{partNamed(t, "fast")}, 0)
	if err == nil || !strings.Contains(err.Error(), "fast: two") {
		t.Errorf("got error %v, want one that names fast: two", err)
	}
	if !strings.HasSuffix(printed.String(), "\n2 passed, 1 failed, 1 skipped\n") {
		t.Errorf("the report does not end with the number of tests:\n%s", printed.String())
	}
}

func TestOnlyWhatFailedIsPrinted(t *testing.T) {
	of := newRecord("one")
	err := of.read(strings.NewReader(`{"Action":"run","Test":"TestGood"}
{"Action":"output","Test":"TestGood","Output":"good\n"}
{"Action":"pass","Test":"TestGood","Elapsed":1.5}
{"Action":"output","Test":"TestBad","Output":"bad\n"}
{"Action":"output","Test":"TestBad/part","Output":"bad part\n"}
{"Action":"fail","Test":"TestBad/part"}
{"Action":"fail","Test":"TestBad"}
{"Action":"output","Test":"TestHangs","Output":"hangs\n"}
{"Action":"output","Output":"panic: test timed out\n"}
{"Action":"fail","Elapsed":3}
`))
	if err != nil {
		t.Fatal(err)
	}
	failed := outcome{err: errors.New("exit status 2")}
	of.fill(&failed)
	if want := "bad\nbad part\nhangs\npanic: test timed out\n"; failed.printed != want {
		t.Errorf("printed %q, want %q", failed.printed, want)
	}
	if failed.passed != 1 || failed.failed != 1 || failed.skipped != 0 {
		t.Errorf("counted %d, %d, %d, want 1 passed and 1 failed", failed.passed, failed.failed, failed.skipped)
	}
}
