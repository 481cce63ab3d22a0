package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/devcluster/internal/image"
	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
)

// imageBuild are the flags of the command.
type imageBuild struct {
	spec         image.Spec
	user         string
	added        []string
	data, output string
	noCache      bool
}

func newImageBuild() *cobra.Command {
	var b imageBuild
	cmd := &cobra.Command{
		Use:   "build NAME [PACKAGE...]",
		Short: "Build an image from programs, packages of Debian and files",
		Long: `Build builds the image NAME and loads it into the real node of the cluster that
runs on the data directory. It needs neither a container engine nor a registry.

An image consists of a base, the packages, the added files and the programs, in
this order. The base has the CA certificates of this machine, /tmp and the users.
Packages come from the mirror that apt uses on this machine, also for a suite other
than that of the machine. What they depend on is added. Their scripts do not run.
Layers of packages are cached in the user's cache, in einmal/images.

NAME needs a tag other than "latest".`,
		Example: `  CGO_ENABLED=0 go build -o app . && devcluster image build example.org/app:dev --program app --user 65532
  devcluster image build example.org/postgres:15 --debian bookworm postgresql-15 dash util-linux \
    --exclude 'libllvm*,libz3*' --user postgres:999 --env PATH=/usr/lib/postgresql/15/bin:/usr/bin
  devcluster image build example.org/site:dev --debian bookworm busybox-static \
    --add public:/srv --entrypoint busybox --entrypoint httpd --entrypoint -f --entrypoint -h --entrypoint /srv
  devcluster image build example.org/app:dev --program app --output app.tar`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := b.parse(cmd, args); err != nil {
				return err
			}
			ctx, stop := untilStopped(cmd.Context())
			defer stop()
			if b.output != "" {
				return b.write(ctx, cmd)
			}
			return b.load(ctx, cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&b.spec.Programs, "program", nil,
		"add the program `FILE` to /usr/local/bin; the first one is the default entrypoint; repeatable")
	flags.StringVar(&b.spec.Packages.Suite, "debian", "", "add each PACKAGE from a `SUITE` of the machine's mirror, for example bookworm")
	flags.StringSliceVar(&b.spec.Packages.Exclude, "exclude", nil, "leave out packages that match a `PATTERN`, for example 'libllvm*'; repeatable")
	flags.StringArrayVar(&b.added, "add", nil, "add a file, or the files of a directory, as `HOSTPATH:/path`, owned by root; repeatable")
	flags.StringVar(&b.user, "user", "", "run containers as the user `[NAME:]ID`; a name gets an entry in /etc/passwd (default root)")
	flags.StringArrayVar(&b.spec.Entrypoint, "entrypoint", nil, "`ARG` of the command of containers; repeat it for each argument")
	flags.StringArrayVar(&b.spec.Env, "env", nil, "set an environment variable `NAME=VALUE`; repeatable")
	flags.BoolVar(&b.noCache, "no-cache", false, "download packages also if they are in the cache, for their newest versions")
	flags.StringVar(&b.output, "output", "", "write the image to `FILE`, as a docker archive, and load it nowhere")
	addDataFlag(cmd, &b.data)
	return cmd
}

// parse parses the arguments and flags.
func (b *imageBuild) parse(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return wrongUsage(cmd, errors.New("expected the NAME of the image"))
	}
	if err := notEmpty(cmd, "data", "output"); err != nil {
		return err
	}
	var err error
	if b.spec.Tag, err = image.ParseTag(args[0]); err != nil {
		return wrongUsage(cmd, err)
	}
	b.spec.Packages.Names = args[1:]
	for _, text := range b.added {
		added, err := image.ParseAdded(text)
		if err != nil {
			return wrongUsage(cmd, fmt.Errorf("flag --add: %w", err))
		}
		b.spec.Added = append(b.spec.Added, added)
	}
	if b.user != "" {
		if b.spec.User, err = image.ParseUser(b.user); err != nil {
			return wrongUsage(cmd, fmt.Errorf("flag --user: %w", err))
		}
	}
	if err := b.spec.Validate(); err != nil {
		return wrongUsage(cmd, err)
	}
	return nil
}

// build builds the image and writes it to a file.
func (b *imageBuild) build(ctx context.Context, file string, progress io.Writer) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	o := image.Options{Cache: filepath.Join(cache, "einmal", "images"), NoCache: b.noCache, Progress: progress}
	if err := b.spec.Build(ctx, file, o); err != nil {
		return fmt.Errorf("build %s: %w", b.spec.Tag, err)
	}
	return nil
}

// write writes the image to the output file.
func (b *imageBuild) write(ctx context.Context, cmd *cobra.Command) error {
	if err := b.build(ctx, b.output, cmd.ErrOrStderr()); err != nil {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "wrote", b.output)
	return err
}

// load loads the image into the node. Without a node, it does not build the image first.
func (b *imageBuild) load(ctx context.Context, cmd *cobra.Command) error {
	dir, err := instance.At(b.data)
	if err != nil {
		return err
	}
	pid, err := nodeProcess(dir)
	if err != nil {
		return fmt.Errorf("build %s: %w\nor write a file: set --output", b.spec.Tag, err)
	}
	temporary, err := os.MkdirTemp("", "devcluster-archive-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // It is in the directory for temporary files.
	file := filepath.Join(temporary, "image.tar")
	if err := b.build(ctx, file, cmd.ErrOrStderr()); err != nil {
		return err
	}
	names, err := realnode.LoadImages(ctx, pid, file)
	if err != nil {
		return err
	}
	return printLoaded(cmd, names)
}
