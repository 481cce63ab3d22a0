package realnode

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// importPause gives containerd the pause image.
func importPause(ctx context.Context) error {
	image, err := pauseArchive()
	if err != nil {
		return err
	}
	if out, err := ctr(ctx, image, "images", "import", "-"); err != nil {
		return fmt.Errorf("import the pause image: %w: %s", err, out)
	}
	return nil
}

// pauseArchive returns the pause image as a docker archive.
func pauseArchive() ([]byte, error) {
	layer, err := archive(file{"pause", 0o755, pauseProgram()})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Entrypoint": []string{"/pause"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{pauseImage}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	return archive(file{"layer.tar", 0o644, layer}, file{"config.json", 0o644, config}, file{"manifest.json", 0o644, manifest})
}

// file is a file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

func archive(files ...file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// pauseProgram returns a static ELF program for amd64 that waits for ever. The kernel removes its ended children, which a Pod with a common
// process namespace needs, because it ignores SIGCHLD. Signals that are not handled do not reach the first process of a namespace, so that it
// ends by SIGKILL.
func pauseProgram() []byte {
	code := []byte{
		0xb8, 13, 0, 0, 0, // mov eax, 13: rt_sigaction
		0xbf, 17, 0, 0, 0, // mov edi, 17: SIGCHLD
		0x48, 0x8d, 0x35, 19, 0, 0, 0, // lea rsi, [rip+19]: the action below
		0x31, 0xd2, // xor edx, edx: no old action
		0x41, 0xba, 8, 0, 0, 0, // mov r10d, 8: the size of the mask
		0x0f, 0x05, // syscall
		0xb8, 34, 0, 0, 0, // loop: mov eax, 34: pause
		0x0f, 0x05, // syscall
		0xeb, 0xf7, // jmp loop
		1, 0, 0, 0, 0, 0, 0, 0, // the handler SIG_IGN
		0, 0, 0, 0, 0, 0, 0, 0, // no flags
		0, 0, 0, 0, 0, 0, 0, 0, // no restorer
		0, 0, 0, 0, 0, 0, 0, 0, // an empty mask
	}
	const base, headers = 0x400000, 64 + 56
	size := uint64(headers + len(code))
	out := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	le := binary.LittleEndian
	for _, v := range []uint16{2, 62} { // an executable, for amd64
		out = le.AppendUint16(out, v)
	}
	out = le.AppendUint32(out, 1)
	for _, v := range []uint64{base + headers, 64, 0} { // the entry, the program headers, no sections
		out = le.AppendUint64(out, v)
	}
	out = le.AppendUint32(out, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} { // the sizes and numbers of headers
		out = le.AppendUint16(out, v)
	}
	for _, v := range []uint32{1, 5} { // loaded, readable and executable
		out = le.AppendUint32(out, v)
	}
	for _, v := range []uint64{0, base, base, size, size, 0x1000} { // from the beginning of the file
		out = le.AppendUint64(out, v)
	}
	return append(out, code...)
}
