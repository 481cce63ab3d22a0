// Package console merges the output of several programs on one screen. Lines are never mixed, and each is prefixed with
// the name of its program.
package console

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// longestLine is the length at which a line is broken, so that output without line ends is still shown.
const longestLine = 64 << 10

// Colour is the terminal escape sequence for the prefix of a stream.
type Colour string

// The colours of prefixes. All are readable on light and dark backgrounds.
const (
	Green   Colour = "\x1b[32m"
	Blue    Colour = "\x1b[34m"
	Magenta Colour = "\x1b[35m"
)

const colourEnd = "\x1b[0m"

// Console is a screen that several streams write to.
type Console struct {
	coloured bool
	width    int

	mu           sync.Mutex
	out, results io.Writer
}

// New returns a console that writes prefixed lines to out and results to results. names are the names of all streams;
// their prefixes are aligned.
func New(out, results io.Writer, coloured bool, names ...string) *Console {
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	return &Console{out: out, results: results, coloured: coloured, width: width}
}

// Coloured reports whether to colour prefixes: on a terminal that supports colours, unless NO_COLOR is set.
func Coloured(terminal bool, getenv func(string) string) bool {
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Result writes a line without a prefix to the results, for a person to copy or a program to read.
func (c *Console) Result(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.results, line+"\n")
}

// Stream returns a new stream whose lines are prefixed with name.
func (c *Console) Stream(name string, colour Colour) *Stream {
	prefix := fmt.Sprintf("%*s | ", c.width, name)
	if c.coloured {
		prefix = fmt.Sprintf("%s%*s |%s ", colour, c.width, name, colourEnd)
	}
	return &Stream{console: c, prefix: prefix}
}

// write writes whole lines to the screen. It ignores errors, because the programs should keep running even if the screen
// is closed.
func (c *Console) write(lines []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.out.Write(lines)
}

// Stream receives the output of one program. It is safe for concurrent use.
type Stream struct {
	console *Console
	prefix  string

	mu      sync.Mutex
	partial []byte
}

// Write buffers output and writes complete lines to the screen.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = append(s.partial, p...)
	var lines bytes.Buffer
	for {
		end := bytes.IndexByte(s.partial, '\n')
		if end < 0 && len(s.partial) < longestLine {
			break
		}
		if end < 0 {
			s.line(&lines, s.partial[:longestLine])
			s.partial = s.partial[longestLine:]
			continue
		}
		s.line(&lines, s.partial[:end])
		s.partial = s.partial[end+1:]
	}
	if lines.Len() > 0 {
		s.console.write(lines.Bytes())
	}
	return len(p), nil
}

// Close writes a last line without a line end. The stream can still be used afterwards.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.partial) == 0 {
		return nil
	}
	var lines bytes.Buffer
	s.line(&lines, s.partial)
	s.partial = nil
	s.console.write(lines.Bytes())
	return nil
}

// Printf writes a message of one or more lines. No other output appears between its lines.
func (s *Stream) Printf(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	var lines bytes.Buffer
	for line := range strings.SplitSeq(text, "\n") {
		s.line(&lines, []byte(line))
	}
	s.console.write(lines.Bytes())
}

func (s *Stream) line(to *bytes.Buffer, line []byte) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) == 0 {
		to.WriteString(strings.TrimRight(s.prefix, " "))
	} else {
		to.WriteString(s.prefix)
		to.Write(line)
	}
	to.WriteByte('\n')
}
