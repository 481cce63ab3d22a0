package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// quote returns the page with all quotations updated, and a message for each quotation that was outdated or invalid.
func quote(tree fs.FS, text string) (updated string, stale []string) {
	marker := regexp.MustCompile(`^<!-- from ([^\s:]+)(?:: ([^>]+?))? -->\s*$`)
	lines := strings.SplitAfter(text, "\n")
	var page strings.Builder
	for i := 0; i < len(lines); i++ {
		page.WriteString(lines[i])
		match := marker.FindStringSubmatch(lines[i])
		if match == nil {
			continue
		}
		block, end := fencedBlock(lines, i+1)
		if end == 0 {
			stale = append(stale, fmt.Sprintf("quotation of %s: no fenced block follows", match[1]))
			continue
		}
		want, err := source(tree, match[1], match[2])
		if err != nil {
			stale = append(stale, fmt.Sprintf("quotation of %s: %v", match[1], err))
			want = block
		}
		if want != block {
			stale = append(stale, fmt.Sprintf("quotation of %s differs from its source; run make generate", match[1]))
		}
		page.WriteString(lines[i+1] + want + lines[end])
		i = end
	}
	return page.String(), stale
}

// fencedBlock returns the text of the block that opens at line start, and the index of its closing line, or 0 if there is no
// block.
func fencedBlock(lines []string, start int) (text string, end int) {
	if start >= len(lines) || !isFence(lines[start]) {
		return "", 0
	}
	for end = start + 1; end < len(lines); end++ {
		if isFence(lines[end]) {
			return strings.Join(lines[start+1:end], ""), end
		}
	}
	return "", 0
}

// source returns the named declarations of a Go file with their comments, or the whole file if there are no names.
func source(tree fs.FS, file, names string) (string, error) {
	text, err := fs.ReadFile(tree, path.Clean(file))
	if err != nil {
		return "", err
	}
	if names == "" {
		return string(text), nil
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var parts []string
	for name := range strings.SplitSeq(names, ",") {
		from, to := declaration(parsed, strings.TrimSpace(name))
		if !from.IsValid() {
			return "", fmt.Errorf("no declaration %q", strings.TrimSpace(name))
		}
		parts = append(parts, string(text[set.Position(from).Offset:set.Position(to).Offset])+"\n")
	}
	return strings.Join(parts, "\n"), nil
}

// declaration returns the range of a declaration: a function, method ("Type.Method"), type, variable or constant by its
// name, or the imports by the name "imports".
func declaration(file *ast.File, name string) (from, to token.Pos) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if funcName(decl) == name {
				return start(decl, decl.Doc), decl.End()
			}
		case *ast.GenDecl:
			if declares(decl, name) {
				return start(decl, decl.Doc), decl.End()
			}
		}
	}
	return token.NoPos, token.NoPos
}

func start(decl ast.Node, doc *ast.CommentGroup) token.Pos {
	if doc != nil {
		return doc.Pos()
	}
	return decl.Pos()
}

func funcName(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	receiver := decl.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if ident, ok := receiver.(*ast.Ident); ok {
		return ident.Name + "." + decl.Name.Name
	}
	return decl.Name.Name
}

func declares(decl *ast.GenDecl, name string) bool {
	if decl.Tok == token.IMPORT {
		return name == "imports"
	}
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.Name == name {
				return true
			}
		case *ast.ValueSpec:
			if len(spec.Names) > 0 && spec.Names[0].Name == name {
				return true
			}
		}
	}
	return false
}
