// Package bucket copies backups from a folder to an S3 bucket, and fetches them from there.
//
// The key of an object is PREFIX/NAME/FILE. NAME is the name of a backup and FILE one of its four files: see backup.sh. The file sha256 is sent last and
// deleted first, so a backup that has all its files is complete. Keys of another form are neither read nor changed.
package bucket

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Settings say where the bucket is and who may use it.
type Settings struct {
	// Endpoint is the URL of the server with the scheme http or https, for example https://s3.eu-central-1.amazonaws.com or http://minio.minio:9000.
	Endpoint string
	// Region is the region of the bucket, or "" for the one that the server reports.
	Region string
	// Bucket is the name of the bucket.
	Bucket string
	// Prefix is the folder of the backups of one Database, without a slash at its begin or end. With "", the backups are at the top of the bucket.
	Prefix string
	// AccessKey and SecretKey are the credentials. No error and no line of the log contains SecretKey.
	AccessKey, SecretKey string
	// Authority holds certificates in PEM. The certificate of the server is checked with them besides those of the system. "" stands for none.
	Authority string
}

// Bucket is a place for the backups of one Database. Its methods must not run concurrently.
type Bucket struct {
	client minio.Core
	name   string
	root   string // the prefix with a slash at its end
	log    io.Writer
	limits limits
}

// limits are what tests make smaller.
type limits struct {
	partSize int64         // bytes of a part of a large file, at least 5 MiB; each file needs as much memory
	attempts int           // how often a request is made until it succeeds
	timeout  time.Duration // limit of waiting for an answer and of a blocked write; a read may block for twice the time
	lockWait time.Duration // how long to wait for the lock
	lockPoll time.Duration // the time between two attempts to take the lock
	report   time.Duration // the least time between two lines about the progress of a file
}

// Open returns a bucket, and makes no request. Progress is written to the log as lines. The error names the wrong setting.
func Open(settings Settings, log io.Writer) (*Bucket, error) {
	return open(settings, log, limits{
		partSize: 64 << 20,
		attempts: 5,
		timeout:  time.Minute,
		lockWait: time.Hour,
		lockPoll: time.Second,
		report:   30 * time.Second,
	})
}

func open(settings Settings, log io.Writer, limits limits) (*Bucket, error) {
	endpoint, err := settings.endpoint()
	if err != nil {
		return nil, err
	}
	if err := settings.validate(); err != nil {
		return nil, err
	}
	transport, err := newTransport(settings.Authority, limits.timeout)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:      credentials.NewStaticV4(settings.AccessKey, settings.SecretKey, ""),
		Secure:     endpoint.Scheme == "https",
		Transport:  transport,
		Region:     settings.Region,
		MaxRetries: limits.attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	// Otherwise, the client would replace the host of an endpoint of AWS.
	client.SetS3EnableDualstack(strings.Contains(endpoint.Host, ".dualstack."))
	root := settings.Prefix + "/"
	if settings.Prefix == "" {
		root = ""
	}
	return &Bucket{client: minio.Core{Client: client}, name: settings.Bucket, root: root, log: log, limits: limits}, nil
}

// endpoint returns the URL of the server. Errors do not repeat the URL, because a wrong one may contain a password.
func (s *Settings) endpoint() (*url.URL, error) {
	endpoint, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https":
		return nil, errors.New("endpoint: must be a URL with the scheme http or https, for example https://s3.eu-central-1.amazonaws.com")
	case endpoint.User != nil || strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" || endpoint.Fragment != "":
		return nil, errors.New("endpoint: must be a scheme and a host only, without a user, path or query")
	}
	return endpoint, nil
}

// validate checks the settings besides the endpoint and the authority.
func (s *Settings) validate() error {
	switch {
	case s.Bucket == "":
		return errors.New("bucket: must not be empty")
	case s.AccessKey == "":
		return errors.New("access key: must not be empty")
	case s.SecretKey == "":
		return errors.New("secret key: must not be empty")
	case strings.Trim(s.Prefix, "/") != s.Prefix:
		return fmt.Errorf("prefix: must not begin or end with a slash, got %q", s.Prefix)
	}
	return nil
}

// location returns the URL of a key for people. With "", it returns that of the folder with the backups.
func (b *Bucket) location(key string) string {
	if key == "" {
		key = b.root
	}
	return strings.TrimSuffix("s3://"+b.name+"/"+key, "/")
}

// key returns the key of a file of a backup.
func (b *Bucket) key(backup, file string) string { return b.root + backup + "/" + file }

func (b *Bucket) print(format string, values ...any) { fmt.Fprintf(b.log, format+"\n", values...) }
