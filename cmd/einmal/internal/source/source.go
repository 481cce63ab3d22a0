// Package source finds the source files of an operator's program and builds it.
package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
)

// goPackage is the output of "go list -json" for a package.
type goPackage struct {
	Dir            string
	Name           string
	Standard       bool
	DepOnly        bool
	Module         *goModule
	GoFiles        []string
	CgoFiles       []string
	IgnoredGoFiles []string
	EmbedFiles     []string
	Error          *struct{ Err string }
}

type goModule struct {
	Main    bool
	GoMod   string
	Replace *struct{ Version string }
}

// Inspect returns the source files of the program in dir, an absolute path. The sources need not compile, but dir must
// contain Go files of a main package.
func Inspect(ctx context.Context, spawner *process.Spawner, dir string) (*Tree, error) {
	const remedy = "remedy: name the directory of the operator's main package"
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("find the operator's sources: %w\n%s", err, remedy)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("find the operator's sources: %s is not a directory\n%s", dir, remedy)
	}
	const fields = "Dir,Name,Standard,DepOnly,Module,GoFiles,CgoFiles,IgnoredGoFiles,EmbedFiles,Error"
	output, err := spawner.Output(ctx, process.Command{Args: []string{"go", "list", "-e", "-deps", "-json=" + fields, "."}, Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("find the Go package in %s: %w", dir, err)
	}
	packages, err := decode(output)
	if err != nil {
		return nil, fmt.Errorf("find the Go package in %s: %w", dir, err)
	}
	if err := check(dir, packages); err != nil {
		return nil, err
	}
	workspace, err := spawner.Output(ctx, process.Command{Args: []string{"go", "env", "GOWORK"}, Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("find the Go workspace of %s: %w", dir, err)
	}
	return newTree(dir, packages, strings.TrimSpace(string(workspace))), nil
}

func decode(output []byte) ([]goPackage, error) {
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			return nil, fmt.Errorf("parse the output of go list: %w", err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// check returns an error unless the listed package in dir is a main package.
func check(dir string, packages []goPackage) error {
	i := slices.IndexFunc(packages, func(p goPackage) bool { return !p.DepOnly })
	if i < 0 || len(packages[i].GoFiles)+len(packages[i].CgoFiles)+len(packages[i].IgnoredGoFiles) == 0 {
		reason, remedy := "no Go files", "name the directory of the operator's main package"
		if i >= 0 && packages[i].Error != nil {
			reason = packages[i].Error.Err
		}
		if strings.HasPrefix(reason, "malformed import path") {
			remedy = "rename the directory; below the directory of go.mod, Go allows only ASCII letters, digits and -._~ in names"
		}
		return fmt.Errorf("find the Go package in %s: %s\nremedy: %s", dir, reason, remedy)
	}
	if name := packages[i].Name; name != "" && name != "main" {
		return fmt.Errorf("the Go package in %s must be main, got %q\n"+
			"remedy: name the directory of the operator's main package", dir, name)
	}
	return nil
}

// Build builds the program in dir and writes it to binary. The output of the compiler goes to screen. ok reports whether
// the program compiled.
func Build(ctx context.Context, spawner *process.Spawner, dir, binary string, screen io.Writer) (ok bool, err error) {
	code, err := spawner.Run(ctx, process.Command{
		Args: []string{"go", "build", "-o", binary, "."}, Dir: dir, Stdout: screen, Stderr: screen,
	})
	if err != nil {
		return false, fmt.Errorf("build %s: %w", dir, err)
	}
	return code == 0, nil
}
