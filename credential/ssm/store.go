package ssm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/einmal-operators/einmal/credential"
)

// errNoAnswer means that the answer does not say whether a requested parameter exists.
var errNoAnswer = errors.New("the answer does not tell of it")

// ErrQuota means that the account has reached the AWS quota of parameters of the tier in the region. It stays until a person deletes parameters or
// selects another tier.
var ErrQuota = errors.New("there is no room for another parameter")

// maxNames is the maximum number of parameters in one read request.
const maxNames = 10

// Options configure a Store. Client and Prefix are required.
type Options struct {
	// Client is an SDK client made from config.LoadDefaultConfig. The Store never logs request or response bodies, even if the client is
	// set to.
	Client *awsssm.Client
	// Prefix is the path of all parameters of the Store, such as /tenants or /prod/tenants.
	Prefix string
	// KeyID is the KMS key that encrypts them: its id, its ARN, or an alias such as alias/tenants. The default is the account's key for SSM,
	// which every user in the account with permissions for the parameter can use.
	KeyID string
	// Tags are set on parameters when the Store creates them. Later changes of Tags do not affect existing parameters.
	Tags map[string]string
	// Tier is the tier of new parameters: Standard (10,000 in an account and a region), Advanced (100,000, which AWS charges for) or
	// Intelligent-Tiering. The default is the setting of the account.
	Tier string
	// Limits limits the rate of requests. Share it among all stores of an account and a region. The default is DefaultLimits, for this Store
	// alone.
	Limits *Limits
}

// Store keeps credentials in SSM. Create it with New.
type Store struct{ options Options }

var _ credential.Store = (*Store)(nil)

// New returns a Store. It returns an error for invalid Options, and sends no request.
func New(options Options) (*Store, error) {
	options.Limits = cmp.Or(options.Limits, DefaultLimits())
	first := strings.ToLower(strings.TrimPrefix(options.Prefix, "/"))
	switch {
	case options.Client == nil:
		return nil, errors.New("ssm: Options.Client is missing: make one with ssm.NewFromConfig of the AWS SDK")
	case !regexp.MustCompile(`^(/[A-Za-z0-9_.-]+)+$`).MatchString(options.Prefix):
		return nil, fmt.Errorf("ssm: Options.Prefix is %q: it must be a path such as /tenants, of letters, digits, and . _ -", options.Prefix)
	case options.Tier != "" && !slices.Contains(types.ParameterTier("").Values(), types.ParameterTier(options.Tier)):
		return nil, fmt.Errorf("ssm: Options.Tier is %q: it must be one of %v", options.Tier, types.ParameterTier("").Values())
	case strings.HasPrefix(first, "aws") || strings.HasPrefix(first, "ssm"):
		return nil, fmt.Errorf("ssm: Options.Prefix is %q: AWS keeps paths that begin with aws or ssm for itself, choose another", options.Prefix)
	}
	return &Store{options}, nil
}

// Path returns the name of the parameter that readers of a credential use.
func (s *Store) Path(name string) string { return s.options.Prefix + "/" + name }

// generation returns the name of the parameter of one generation.
func (s *Store) generation(name string, generation int) string {
	return s.Path(name) + "/g" + strconv.Itoa(generation)
}

// check returns an error for names that SSM does not accept, and for names that could be the generation of another credential.
func check(name string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`).MatchString(name) {
		return fmt.Errorf("credential %q: its name must be a path of letters, digits, and . _ -, such as acme/shop/db", name)
	}
	if regexp.MustCompile(`(^|/)g\d+$`).MatchString(name) {
		return fmt.Errorf("credential %q: its name must not end like a generation's: choose another", name)
	}
	return nil
}

// Create creates the parameter of a generation. It returns credential.ErrExists if the parameter exists, and ErrQuota if the account has no
// capacity for it.
func (s *Store) Create(ctx context.Context, name string, owner credential.Owner, record credential.Record) error {
	if err := check(name); err != nil {
		return err
	}
	if record.Generation < 1 {
		return fmt.Errorf("credential %s: its generation is %d, and they count from 1", name, record.Generation)
	}
	return s.put(ctx, s.generation(name, record.Generation), owner, record)
}

// put creates a parameter.
func (s *Store) put(ctx context.Context, path string, owner credential.Owner, record credential.Record) error {
	request, err := s.request(path, owner, record)
	if err != nil {
		return err
	}
	request.Tier = types.ParameterTier(s.options.Tier)
	for _, key := range slices.Sorted(maps.Keys(s.options.Tags)) {
		request.Tags = append(request.Tags, types.Tag{Key: aws.String(key), Value: aws.String(s.options.Tags[key])})
	}
	_, err = s.options.Client.PutParameter(ctx, request, s.options.Limits.writing)
	if _, exists := errors.AsType[*types.ParameterAlreadyExists](err); exists {
		return fmt.Errorf("parameter %s: %w", path, credential.ErrExists)
	}
	return told("create", path, err, record.Password)
}

// request returns the request that creates a parameter.
func (s *Store) request(path string, owner credential.Owner, record credential.Record) (*awsssm.PutParameterInput, error) {
	text, err := encode(owner, record)
	if err != nil {
		return nil, fmt.Errorf("parameter %s: %w", path, err)
	}
	request := &awsssm.PutParameterInput{Name: &path, Value: &text, Type: types.ParameterTypeSecureString, Overwrite: aws.Bool(false)}
	if s.options.KeyID != "" {
		request.KeyId = &s.options.KeyID
	}
	return request, nil
}

// Read reads the copy for readers and nine generations in one request. It sends more requests only if the last of these generations exists.
func (s *Store) Read(ctx context.Context, name string, owner credential.Owner, from int) (credential.Found, error) {
	if err := check(name); err != nil {
		return credential.Found{}, err
	}
	window := s.look(name)
	published, err := window.published(ctx, owner, max(from, 1))
	if err != nil {
		return credential.Found{}, err
	}
	found := credential.Found{Copy: published.record.Generation}
	for generation := max(from, published.record.Generation-1, 1); ; generation++ {
		there, err := window.generation(ctx, generation)
		if err != nil {
			return credential.Found{}, err
		}
		if there == nil && generation > published.record.Generation {
			return found, nil
		}
		if there == nil {
			continue // It was removed. There can be later ones.
		}
		if err := cmp.Or(there.owned(owner), there.holds(generation)); err != nil {
			return credential.Found{}, err
		}
		found.Records = append(found.Records, there.record)
		if there.record == published.record {
			found.Published, found.Since = generation, published.changed
		}
	}
}

// Publish writes the copy for readers. It creates the parameter with the Tags. If the parameter already contains the record, it writes nothing.
//
// SSM has no conditional write, but it numbers the versions of a parameter. So after its write, Publish can read what another writer has written
// since its own read. If that was a later generation, Publish restores it and returns credential.ErrSuperseded.
func (s *Store) Publish(ctx context.Context, name string, owner credential.Owner, record credential.Record) error {
	if err := check(name); err != nil {
		return err
	}
	path := s.Path(name)
	there, err := s.one(ctx, path)
	if err == nil && there == nil {
		if err = s.put(ctx, path, owner, record); !errors.Is(err, credential.ErrExists) {
			return err
		}
		if there, err = s.one(ctx, path); err == nil && there == nil {
			return fmt.Errorf("parameter %s: %w", path, credential.ErrUnsettled)
		}
	}
	if err = cmp.Or(err, there.owned(owner)); err != nil {
		return err
	}
	record.Created = record.Created.UTC().Truncate(time.Second)
	switch {
	case there.named() > record.Generation:
		return fmt.Errorf("parameter %s has generation %d, not %d: %w", path, there.record.Generation, record.Generation, credential.ErrSuperseded)
	case there.wrong == "" && there.record == record:
		return nil
	}
	return s.replace(ctx, there, owner, record)
}

// CheckPublish returns nil: SSM has no dry run. Read and Create have used the same path, key and owner.
func (*Store) CheckPublish(context.Context, string, credential.Owner, credential.Record) error {
	return nil
}

// replaceAttempts limits the writes of replace when other writers write at the same time.
const replaceAttempts = 10

// replace overwrites a parameter that was read, and restores a later generation that another writer has written since that read.
func (s *Store) replace(ctx context.Context, there *parameter, owner credential.Owner, record credential.Record) error {
	wanted, version := record, there.version
	for range replaceAttempts {
		written, err := s.overwrite(ctx, there.name, owner, wanted)
		if err != nil {
			return err
		}
		latest, err := s.latestBetween(ctx, there.name, owner, version, written)
		if err != nil {
			return err
		}
		if latest.Generation <= wanted.Generation {
			if wanted != record {
				return fmt.Errorf("parameter %s has generation %d, not %d: %w", there.name, wanted.Generation, record.Generation, credential.ErrSuperseded)
			}
			return nil
		}
		wanted, version = latest, written
	}
	return fmt.Errorf("parameter %s: many write it at the same time: %w", there.name, credential.ErrUnsettled)
}

// latestBetween returns the record of the latest generation among the versions of a parameter from before, inclusive, to after, exclusive. The
// first version is included, because it can differ from the one that was read: if the parameter was deleted meanwhile, versions count from 1
// again.
func (s *Store) latestBetween(ctx context.Context, path string, owner credential.Owner, before, after int64) (credential.Record, error) {
	var latest credential.Record
	if after <= before {
		before = 1
	}
	for version := before; version < after; version++ {
		there, err := s.one(ctx, fmt.Sprintf("%s:%d", path, version))
		switch {
		case err != nil:
			return latest, err
		case there == nil:
			return latest, fmt.Errorf("parameter %s has no version %d: %w", path, version, credential.ErrUnsettled)
		case there.owned(owner) == nil && there.named() > latest.Generation:
			latest = there.record
		}
	}
	return latest, nil
}

// overwrite writes an existing parameter, and returns its new version.
func (s *Store) overwrite(ctx context.Context, path string, owner credential.Owner, record credential.Record) (int64, error) {
	request, err := s.request(path, owner, record)
	if err != nil {
		return 0, err
	}
	request.Overwrite = aws.Bool(true)
	written, err := s.options.Client.PutParameter(ctx, request, s.options.Limits.writing)
	if err != nil {
		return 0, told("overwrite", path, err, record.Password)
	}
	return written.Version, nil
}

// Delete deletes the copy for readers and all generations. It reads all of them first. If one belongs to another owner, it deletes none and
// returns credential.ErrConflict.
func (s *Store) Delete(ctx context.Context, name string, owner credential.Owner) error {
	if err := check(name); err != nil {
		return err
	}
	window := s.look(name)
	published, err := window.published(ctx, owner, 1)
	if err != nil {
		return err
	}
	var generations []int
	for _, from := range []int{1, published.record.Generation} { // More generations can be missing before the published one than one request reads.
		for generation := max(from, 1); generation <= window.last || window.asks(generation); generation++ {
			there, err := window.generation(ctx, generation)
			if err = cmp.Or(err, there.owned(owner)); err != nil {
				return err
			}
			if there != nil {
				generations = append(generations, generation)
			}
		}
	}
	slices.Sort(generations)
	paths := []string{s.Path(name)}
	for _, generation := range slices.Backward(slices.Compact(generations)) {
		paths = append(paths, s.generation(name, generation))
	}
	return s.remove(ctx, slices.DeleteFunc(paths, func(path string) bool { return window.read[path] == nil }))
}

// remove deletes parameters, one after the other.
func (s *Store) remove(ctx context.Context, paths []string) error {
	for _, path := range paths {
		_, err := s.options.Client.DeleteParameter(ctx, &awsssm.DeleteParameterInput{Name: &path}, s.options.Limits.writing)
		if _, gone := errors.AsType[*types.ParameterNotFound](err); err != nil && !gone {
			return told("delete", path, err, credential.Password{})
		}
	}
	return nil
}

// told returns the error of a request, with the remedy. AWS could quote the request in its message. So told leaves out a message that contains
// the password.
func told(verb, path string, err error, password credential.Password) error {
	if err == nil {
		return nil
	}
	code := ""
	if api, is := errors.AsType[smithy.APIError](err); is {
		code = api.ErrorCode()
	}
	if !password.IsZero() && strings.Contains(err.Error(), password.Reveal()) {
		err = errors.New("AWS error " + code)
	}
	switch {
	case strings.HasPrefix(code, "AccessDenied"):
		err = fmt.Errorf("%w; allow it to the operator's role, on the parameter and on its KMS key", err)
	case strings.HasPrefix(code, "KMS") || code == "InvalidKeyId":
		err = fmt.Errorf("%w; the KMS key must be there, enabled, and allowed to the operator's role", err)
	case code == "ParameterLimitExceeded":
		err = fmt.Errorf("%w: %w; delete generations that are not used any more, or choose another tier", ErrQuota, err)
	case strings.HasPrefix(code, "Throttling") || code == codeTooManyUpdates:
		err = fmt.Errorf("%w; if it stays, lower the Limits, or have the account's throughput raised", err)
	}
	return fmt.Errorf("%s parameter %s: %w", verb, path, err)
}
