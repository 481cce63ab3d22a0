package image

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// apt is apt-get with a state of its own.
type apt struct {
	dir     string
	options []string
}

// newApt prepares apt for a suite in a directory. Its mirrors are those of this machine.
func newApt(ctx context.Context, dir, suite string) (*apt, error) {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("flag --debian: needs %s of Debian or Ubuntu: %w", program, err)
		}
	}
	sources, err := sourcesOf(ctx, suite)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{"lists/partial", "archives/partial", "none"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	for file, text := range map[string]string{"sources.list": sources, "status": ""} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	a := &apt{dir: dir, options: []string{"-qq", "-o", "APT::Sandbox::User=root"}}
	for option, file := range map[string]string{
		"Dir::Etc::SourceList": "sources.list", "Dir::Etc::SourceParts": "none", "Dir::Etc::Preferences": "status",
		"Dir::Etc::PreferencesParts": "none", "Dir::State": "", "Dir::State::status": "status", "Dir::Cache": "",
	} {
		a.options = append(a.options, "-o", option+"="+filepath.Join(dir, file))
	}
	return a, nil
}

// run runs apt-get and returns what it printed.
func (a *apt) run(ctx context.Context, args ...string) (string, error) {
	return printedBy(ctx, a.dir, "apt-get", append(a.options, args...)...)
}

// sourcesOf returns apt's list of sources for a suite. It has the mirrors of the release
// that this machine runs.
func sourcesOf(ctx context.Context, suite string) (string, error) {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", err
	}
	machine := fieldsOf(string(text))
	codename := machine["VERSION_CODENAME"]
	printed, err := printedBy(ctx, "", "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	if err != nil {
		return "", err
	}
	options := ""
	keyring := "/usr/share/keyrings/" + machine["ID"] + "-archive-keyring.gpg"
	if _, err := os.Stat(keyring); err == nil {
		options = "[signed-by=" + keyring + "] "
	}
	var list strings.Builder
	for line := range strings.Lines(printed) {
		var uri, release, component string
		if _, err := fmt.Sscan(line, &uri, &release, &component); err != nil {
			return "", fmt.Errorf("apt-get indextargets: unexpected line %q: %w", line, err)
		}
		if archive, found := sameArchive(release, codename, suite); found {
			fmt.Fprintf(&list, "deb %s%s %s %s\n", options, uri, archive, component)
		}
	}
	if list.Len() == 0 || codename == "" {
		return "", fmt.Errorf("no mirror is known: apt has no source for %s, the release of this machine", cmp.Or(codename, "VERSION_CODENAME of /etc/os-release"))
	}
	return list.String(), nil
}

// sameArchive returns the archive of a suite that corresponds to an archive of the
// release with a codename, for example "trixie-security" to "bookworm-security".
func sameArchive(archive, codename, suite string) (string, bool) {
	kind, found := strings.CutPrefix(archive, codename)
	switch {
	case !found:
		return "", false
	case kind == "":
		return suite, true
	case kind == "-updates" || kind == "-security":
		// Debian's unstable has neither.
		return suite + kind, suite != "sid" && suite != "unstable"
	default:
		return "", false
	}
}

// fieldsOf parses the lines NAME=VALUE of /etc/os-release.
func fieldsOf(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[name] = strings.Trim(value, `"`)
	}
	return fields
}

// printedBy runs a program in a directory, and returns what it printed. Its messages are
// in the error, in English.
func printedBy(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // The program is apt-get, and the user names the packages.
	var stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "LC_ALL=C"), &stderr
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && stderr.Len() > 0:
		return "", errors.New(program + ": " + strings.TrimSpace(stderr.String()))
	case err != nil:
		return "", fmt.Errorf("%s: %w", program, err)
	}
	return string(out), nil
}
