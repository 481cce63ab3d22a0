package record

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"io"
)

// The bounds of what Decode reads. Anyone who may annotate an object can write a record, and a few kilobytes of compressed text can
// unpack to gigabytes.
const (
	// unpackLimit is the maximum number of bytes of one unpacked essence. An API server stores no object of this size: the limit of a
	// request to etcd is 1.5 MiB by default (https://etcd.io/docs/v3.5/dev-guide/limit/).
	unpackLimit = 2 << 20
	// memoryLimit is the maximum number of bytes of memory, as estimated by memoryOf, that a record takes with all its essences.
	memoryLimit = 16 << 20
	// essenceMemoryLimit is the maximum of one essence that Keep stores, so that Decode reads several of them.
	essenceMemoryLimit = 4 << 20
)

// memoryOf estimates how many bytes a JSON text takes in memory as maps and slices. A small map takes some 350 bytes, also if its text is
// a hundredth of that.
func memoryOf(text []byte) int {
	const perMap, perList, perItem = 350, 24, 16
	size, quoted, escaped := len(text), false, false
	for _, char := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && char == '\\':
			escaped = true
		case char == '"':
			quoted = !quoted
		case quoted:
		case char == '{':
			size += perMap
		case char == '[':
			size += perList
		case char == ',':
			size += perItem
		}
	}
	return size
}

// budget is how much memory the essences of a record may still take.
type budget struct{ left int }

// unpack returns an unpacked essence, or not ok if it takes more memory than there is left.
func (b *budget) unpack(text string) (plain []byte, ok bool, err error) {
	if b.left <= 0 {
		return nil, false, nil
	}
	packed, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, false, err
	}
	var unpacked bytes.Buffer
	if _, err := io.Copy(&unpacked, io.LimitReader(flate.NewReader(bytes.NewReader(packed)), unpackLimit+1)); err != nil {
		return nil, false, err
	}
	if unpacked.Len() <= unpackLimit && b.take(unpacked.Bytes()) {
		return unpacked.Bytes(), true, nil
	}
	b.left -= 2 * unpacked.Len() // Unpacking it took time, and the memory of a growing buffer.
	return nil, false, nil
}

// take reports whether a JSON text fits, and subtracts it.
func (b *budget) take(plain []byte) bool {
	size := memoryOf(plain)
	if size > b.left {
		return false
	}
	b.left -= size
	return true
}

// tooLarge explains why a text is not read.
func tooLarge(size int) error {
	return fmt.Errorf("not a record: it would take about %d MiB of memory, more than the limit of %d MiB", size>>20, memoryLimit>>20)
}
