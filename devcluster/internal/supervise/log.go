package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// tailBytes is how many bytes Tail reads from the end of a log.
const tailBytes = 16 << 10

// openLog creates a log file. It keeps the previous one with the suffix ".1".
func openLog(name string) (*os.File, error) {
	if err := os.Rename(name, name+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("keep the previous log: %w", err)
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	return file, nil
}

// Log is the end of the log of a component that has exited.
type Log struct {
	// Tail holds the last lines, without the stack traces of a panic.
	Tail []byte
	// Panic is the message of a panic, or "".
	Panic string
}

// ReadLog reads up to n lines from the end of a log.
func ReadLog(name string, n int) (Log, error) {
	file, err := os.Open(name)
	if err != nil {
		return Log{}, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return Log{}, err
	}
	start := max(0, info.Size()-tailBytes)
	content, err := io.ReadAll(io.NewSectionReader(file, start, tailBytes))
	if err != nil {
		return Log{}, err
	}
	var read Log
	var lines [][]byte
	for line := range bytes.Lines(bytes.TrimRight(content, "\n")) {
		line = bytes.TrimRight(line, "\n")
		if message, ok := bytes.CutPrefix(line, []byte("panic: ")); ok {
			read.Panic = string(message)
		}
		if read.Panic != "" && bytes.HasPrefix(line, []byte("goroutine ")) {
			break // The rest is stack traces.
		}
		lines = append(lines, line)
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	read.Tail = bytes.Join(lines, []byte("\n"))
	return read, nil
}

// Tail returns up to n lines from the end of a log.
func Tail(name string, n int) ([]byte, error) {
	read, err := ReadLog(name, n)
	return read.Tail, err
}
