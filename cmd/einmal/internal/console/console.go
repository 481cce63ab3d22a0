// Package console writes the lines of several programs to one screen: each line whole, never mixed with another,
// and marked with the name of the program that wrote it.
package console

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
)

// longestLine is where a line without an end is broken, so that a program that never ends its line is still seen.
const longestLine = 64 << 10

// Colour is the terminal escape sequence that a stream's mark is written in.
type Colour string

// The colours of marks; all are readable on a light and on a dark background.
const (
	Green   Colour = "\x1b[32m"
	Yellow  Colour = "\x1b[33m"
	Blue    Colour = "\x1b[34m"
	Magenta Colour = "\x1b[35m"
)

const colourEnd = "\x1b[0m"

// Console is one screen that several streams write to.
type Console struct {
	coloured bool
	width    int

	mu           sync.Mutex
	out, results io.Writer
}

// New returns a console that writes marked lines to out and results to results. The names are those of the streams to
// come; their marks are aligned.
func New(out, results io.Writer, coloured bool, names ...string) *Console {
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	return &Console{out: out, results: results, coloured: coloured, width: width}
}

// Coloured decides whether marks are coloured: on a terminal that can, unless the user has set NO_COLOR.
func Coloured(terminal bool, getenv func(string) string) bool {
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Result writes one line without a mark to the results, for a person to copy or for a program to read.
func (c *Console) Result(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.results, line+"\n")
}

// Prompt writes a question without a mark and without a line end.
func (c *Console) Prompt(text string) {
	c.write([]byte(text))
}

// Stream returns a new stream whose lines carry name.
func (c *Console) Stream(name string, colour Colour) *Stream {
	mark := fmt.Sprintf("%*s | ", c.width, name)
	if c.coloured {
		mark = fmt.Sprintf("%s%*s |%s ", colour, c.width, name, colourEnd)
	}
	return &Stream{console: c, mark: mark}
}

// write puts whole lines on the screen. A screen that is gone is not an error worth ending for: the programs that
// run matter more than what they say.
func (c *Console) write(lines []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.out.Write(lines)
}

// Stream is what one program writes. It may be written to from several goroutines.
type Stream struct {
	console *Console
	mark    string

	mu      sync.Mutex
	partial []byte
}

// Write takes output as it comes and passes on the lines that are complete.
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

// Close writes a last line that had no end. The stream can be written to again.
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

// Sayf writes a message of one or more lines at once, so that nothing comes between them.
func (s *Stream) Sayf(format string, args ...any) {
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
		to.WriteString(strings.TrimRight(s.mark, " "))
	} else {
		to.WriteString(s.mark)
		to.Write(line)
	}
	to.WriteByte('\n')
}
