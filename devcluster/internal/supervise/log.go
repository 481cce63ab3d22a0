package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// tailBytes bounds what Tail reads from the end of a log.
const tailBytes = 16 << 10

// openLog opens a new log and keeps the one before.
func openLog(name string) (*os.File, error) {
	if err := os.Rename(name, name+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("log: %w", err)
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return file, nil
}

// Log is what the log of an ended component says about its end.
type Log struct {
	// Tail is the last lines, without the stacks of goroutines.
	Tail []byte
	// Panic is the message of a panic, empty when there was none.
	Panic string
}

// ReadLog reads the end of a log, with up to n lines.
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
			break // The rest is stacks.
		}
		lines = append(lines, line)
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	read.Tail = bytes.Join(lines, []byte("\n"))
	return read, nil
}

// Tail returns up to the last n lines of the file.
func Tail(name string, n int) ([]byte, error) {
	read, err := ReadLog(name, n)
	return read.Tail, err
}
