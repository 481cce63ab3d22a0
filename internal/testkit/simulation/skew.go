package simulation

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// skewed gives a process a clock of its own. All processes of a test share one clock, so the times are shifted where they
// leave the process, in requests, and where they enter it, in answers and watch events. That is all that others see of a clock.
func (p *Process) skewed(next http.RoundTripper) http.RoundTripper {
	if p.skew == 0 {
		return next
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		sent, err := withTimes(r, p.skew)
		if err != nil {
			return nil, err
		}
		answer, err := next.RoundTrip(sent)
		if err != nil || r.URL.Query().Get("watch") != "" {
			return answer, err // The stream of a watch shifts its events.
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		text = shiftTimes(text, -p.skew)
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		return answer, err
	})
}

// withTimes is the request with the times in its body shifted.
func withTimes(r *http.Request, by time.Duration) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, nil
	}
	text, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	text = shiftTimes(text, by)
	sent := r.Clone(r.Context())
	sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return sent, nil
}

// shiftTimes moves every time in a text.
func shiftTimes(text []byte, by time.Duration) []byte {
	if by == 0 {
		return text
	}
	return times().ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse(time.RFC3339Nano, string(found))
		if err != nil {
			return found
		}
		_, fraction, _ := strings.Cut(string(found), ".")
		digits := len(fraction) - len(strings.TrimLeft(fraction, "0123456789"))
		layout := "2006-01-02T15:04:05"
		if digits > 0 {
			layout += "." + strings.Repeat("0", digits)
		}
		return []byte(at.Add(by).Format(layout + "Z07:00"))
	})
}

// times matches points in time as Kubernetes writes them.
func times() *regexp.Regexp {
	return regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
}
