package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"
)

// modulePath is the import path of this library.
const modulePath = "github.com/einmal-operators/einmal"

// shortCommit is how many characters of a commit are printed.
const shortCommit = 12

func (op *Operator) commandVersion(args []string, out, failures io.Writer) int {
	const help = "Prints the name, the version and the commit of the program, and the version of Einmal.\n"
	if code, ok := parse("version", noFlags(help), args, out, failures); !ok {
		return code
	}
	_, _ = fmt.Fprintf(out, "%s %s\n", programName(), version())
	return exitOK
}

// version returns the version and the commit of the operator's module, and the version of this library, as the build
// recorded them.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown version, commit unknown"
	}
	return describeBuild(info)
}

func describeBuild(info *debug.BuildInfo) string {
	commit := "unknown"
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			commit = setting.Value[:min(shortCommit, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			commit += " (modified)"
		}
	}
	library := ""
	for _, dependency := range info.Deps {
		if dependency.Path == modulePath {
			library = ", einmal " + dependency.Version
		}
	}
	return fmt.Sprintf("%s, commit %s%s, %s", cmp.Or(info.Main.Version, "(devel)"), commit, library, info.GoVersion)
}
