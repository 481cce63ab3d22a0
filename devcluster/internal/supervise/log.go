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

// Tail returns up to the last n lines of the file.
func Tail(name string, n int) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	start := max(0, info.Size()-tailBytes)
	content, err := io.ReadAll(io.NewSectionReader(file, start, tailBytes))
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return bytes.Join(lines, []byte("\n")), nil
}
