package kind

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Compiler compiles definitions, each one once: its rules take a while. Several servers can share it, also servers in
// different bubbles of virtual time.
type Compiler struct {
	mu       sync.Mutex
	made     map[string][]*Kind
	builtins []*Kind
	// sound are the new definitions that were found to be valid.
	sound map[string]bool
	// published are the documents of groups and versions.
	published map[string]Document
}

// Builtins returns the built-in kinds.
func (c *Compiler) Builtins() ([]*Kind, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.builtins == nil {
		made, err := c.builtinKinds()
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

// validateDefinition checks a definition. A new one is checked once, which compiles the rules in it.
func (c *Compiler) validateDefinition(object, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	key, err := digest(object)
	if err != nil || old != nil {
		return validateDefinition(object, old)
	}
	c.mu.Lock()
	sound := c.sound[key]
	c.mu.Unlock()
	if sound {
		return nil
	}
	refused := validateDefinition(object, nil)
	if len(refused) == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.sound == nil {
			c.sound = map[string]bool{}
		}
		c.sound[key] = true
	}
	return refused
}
