package kind

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Compiler compiles definitions, each one once: its rules take a while. Several servers can share it, also servers in
// different bubbles of virtual time.
type Compiler struct {
	mu       sync.Mutex
	made     map[string][]*Kind
	builtins []*Kind
}

// Builtins returns the built-in kinds.
func (c *Compiler) Builtins() ([]*Kind, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.builtins == nil {
		made, err := builtinKinds()
		if err != nil {
			return nil, err
		}
		c.builtins = made
	}
	return c.builtins, nil
}

// Compile returns the kinds of a definition, which became valid at the revision.
func (c *Compiler) Compile(definition *apiextensionsv1.CustomResourceDefinition, since int64) ([]*Kind, error) {
	key, err := digest(definition)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	made, found := c.made[key]
	if !found {
		if made, err = Compile(definition); err != nil {
			return nil, err
		}
		if c.made == nil {
			c.made = map[string][]*Kind{}
		}
		c.made[key] = made
	}
	kinds := make([]*Kind, len(made))
	for i, k := range made {
		dated := *k
		dated.Since = since
		kinds[i] = &dated
	}
	return kinds, nil
}
