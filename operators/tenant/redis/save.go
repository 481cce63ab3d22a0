package redis

import (
	"context"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// saves is what is known about the ACL file of a node. A change that is not in the file is undone when the node restarts: a password that
// was taken away is accepted again.
type saves struct {
	mu sync.Mutex
	// known is "" after a start of this process, a failure, or a lost answer.
	known fileState
	// began counts the saves that were requested, and running those without an answer yet.
	began, running int
}

// fileState is the state of an ACL file.
type fileState string

const (
	// inFile: the file has all changes.
	inFile fileState = "saved"
	// noFile: the node has no file.
	noFile fileState = "no file"
)

func (s *saves) now() fileState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// begin notes a request to save. The returned function notes its result. A success counts only if no other request overlapped: the other's
// change may have been made after this save.
func (s *saves) begin() (end func(fileState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began++
	s.running++
	mine, alone := s.began, s.running == 1
	s.known = ""
	return func(result fileState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running--
		if result == inFile && (!alone || s.began != mine) {
			result = ""
		}
		s.known = result
	}
}

// change sends commands and ACL SAVE in one transaction, so that a change is saved even if this process crashes. If only ACL SAVE fails, the
// commands were executed, and change returns ErrUnsaved: keepSaved repeats the save.
func (n *node) change(ctx context.Context, doing string, commands ...[]any) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	end := n.saves.begin()
	answers, err := n.client.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, command := range append(slices.Clone(commands), []any{"ACL", "SAVE"}) {
			pipe.Do(ctx, command...)
		}
		return nil
	})
	if len(answers) == 0 {
		end("")
		return n.fault(doing, err)
	}
	last := len(answers) - 1
	state, unsaved := n.saved(doing, answers[last].Err())
	end(state)
	for _, answer := range answers[:last] {
		if failed := answer.Err(); failed != nil {
			return n.fault(doing, failed)
		}
	}
	return unsaved
}

// save saves the users of a node, which changes none of them. A node without a file is no error.
func (n *node) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.config.Timeout)
	defer cancel()
	end := n.saves.begin()
	state, err := n.saved("save users", n.client.Do(ctx, "ACL", "SAVE").Err())
	end(state)
	return err
}

// saved interprets the answer to ACL SAVE.
func (n *node) saved(doing string, err error) (fileState, error) {
	switch {
	case err == nil:
		return inFile, nil
	case withoutFile(err):
		return noFile, nil
	default:
		return "", n.fault(doing, err)
	}
}

// keepSaved saves the users of a node, unless its file has all changes or it has no file. It returns ErrUnsaved if the node cannot write it.
func (n *node) keepSaved(ctx context.Context) error {
	if n.saves.now() != "" {
		return nil
	}
	return n.save(ctx)
}

// WithoutFile returns the addresses of the nodes without an ACL file, which lose their users in a restart. To find out, it asks each node to
// save its users, unless the node is known to have done so. It returns ErrUnsaved for a node that cannot write its file.
func (n *Nodes) WithoutFile(ctx context.Context) ([]string, error) {
	var without []string
	err := n.each(func(one *node) error {
		if one.saves.now() == inFile {
			return nil
		}
		err := one.save(ctx)
		if one.saves.now() == noFile {
			without = append(without, one.address)
		}
		return err
	})
	return without, err
}
