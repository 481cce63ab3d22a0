package ssm

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/einmal-operators/einmal/credential"
)

// window reads the parameters of a name, ten at a time.
type window struct {
	store *Store
	name  string
	// read contains the requested parameters; nil for one that does not exist.
	read map[string]*parameter
	// last is the latest generation that was found.
	last int
}

func (s *Store) look(name string) *window {
	return &window{store: s, name: name, read: map[string]*parameter{}}
}

// published returns the copy for readers; the zero parameter if there is none or if it is malformed. Publish repairs a malformed copy, so this is
// not an error. It reads the first generations in the same request.
func (w *window) published(ctx context.Context, owner credential.Owner, from int) (parameter, error) {
	path := w.store.Path(w.name)
	if err := w.fetch(ctx, from, path); err != nil {
		return parameter{}, err
	}
	found := w.read[path]
	if err := found.owned(owner); err != nil {
		return parameter{}, err
	}
	if found == nil || found.named() == 0 {
		return parameter{}, nil
	}
	return *found, nil
}

// generation returns one generation; nil if it does not exist. It reads the following ones in the same request.
func (w *window) generation(ctx context.Context, generation int) (*parameter, error) {
	path := w.store.generation(w.name, generation)
	if w.asks(generation) {
		if err := w.fetch(ctx, generation); err != nil {
			return nil, err
		}
	}
	return w.read[path], nil
}

// fetch reads parameters, and as many generations, starting with from, as fit into the same request.
func (w *window) fetch(ctx context.Context, from int, paths ...string) error {
	to := from + maxNames - len(paths)
	for generation := from; generation < to; generation++ {
		paths = append(paths, w.store.generation(w.name, generation))
	}
	if err := w.store.read(ctx, paths, w.read); err != nil {
		return err
	}
	for generation := max(from, w.last+1); generation < to; generation++ {
		if w.read[w.store.generation(w.name, generation)] != nil {
			w.last = generation
		}
	}
	return nil
}

// asks reports whether a generation has not been read yet.
func (w *window) asks(generation int) bool {
	_, asked := w.read[w.store.generation(w.name, generation)]
	return !asked
}

// one reads a parameter; nil if it does not exist.
func (s *Store) one(ctx context.Context, path string) (*parameter, error) {
	read := map[string]*parameter{}
	err := s.read(ctx, []string{path}, read)
	return read[path], err
}

// read reads parameters. A parameter does not exist only if SSM itself says so; after any error this is unknown.
func (s *Store) read(ctx context.Context, paths []string, into map[string]*parameter) error {
	answer, err := s.options.Client.GetParameters(ctx, &awsssm.GetParametersInput{Names: paths, WithDecryption: aws.Bool(true)}, s.options.Limits.reading)
	if err != nil {
		return told("read", paths[0], err, credential.Password{})
	}
	for _, missing := range answer.InvalidParameters {
		into[missing] = nil
	}
	for _, found := range answer.Parameters {
		into[aws.ToString(found.Name)+aws.ToString(found.Selector)] = decode(found)
	}
	for _, path := range paths {
		if _, answered := into[path]; !answered {
			return told("read", path, errNoAnswer, credential.Password{})
		}
	}
	return nil
}
