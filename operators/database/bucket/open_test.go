package bucket

import (
	"io"
	"strings"
	"testing"
)

func TestOpenNamesTheWrongSetting(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Settings)
		want   string
	}{
		"no endpoint":          {func(s *Settings) { s.Endpoint = "" }, "endpoint: must be a URL"},
		"no scheme":            {func(s *Settings) { s.Endpoint = "minio.minio:9000" }, "endpoint: must be a URL"},
		"another scheme":       {func(s *Settings) { s.Endpoint = "ftp://minio" }, "endpoint: must be a URL"},
		"no host":              {func(s *Settings) { s.Endpoint = "https:///backups" }, "endpoint: must be a URL"},
		"no URL":               {func(s *Settings) { s.Endpoint = "https://me:" + secretKey + "%zz@minio" }, "endpoint: must be a URL"},
		"password":             {func(s *Settings) { s.Endpoint = "https://me:" + secretKey + "@minio" }, "endpoint: must be a scheme and a host only"},
		"path":                 {func(s *Settings) { s.Endpoint = "https://minio/backups" }, "endpoint: must be a scheme and a host only"},
		"no bucket":            {func(s *Settings) { s.Bucket = "" }, "bucket: must not be empty"},
		"slash":                {func(s *Settings) { s.Prefix = "prod/" }, `prefix: must not begin or end with a slash, got "prod/"`},
		"no access key":        {func(s *Settings) { s.AccessKey = "" }, "access key: must not be empty"},
		"no secret key":        {func(s *Settings) { s.SecretKey = "" }, "secret key: must not be empty"},
		"no certificate":       {func(s *Settings) { s.Authority = "ca.crt" }, "certificate authority: PEM without a certificate"},
		"key as a certificate": {func(s *Settings) { s.Authority = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" }, "PEM without a certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := testSettings("https://minio:9000")
			test.change(&settings)
			_, err := Open(settings, io.Discard)
			wantError(t, err, test.want)
		})
	}
}

func TestOpenMakesNoRequest(t *testing.T) {
	for _, endpoint := range []string{"https://s3.eu-central-1.amazonaws.com", "http://minio.minio:9000/", "https://s3.dualstack.eu-west-1.amazonaws.com"} {
		settings := testSettings(endpoint)
		settings.Region = ""
		if _, err := Open(settings, io.Discard); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestTopOfABucket(t *testing.T) {
	s := newServer(t)
	settings := testSettings(s.url)
	settings.Prefix = ""
	b, _ := openWith(t, settings, testLimits())
	_, err := b.Fetch(t.Context(), "", t.TempDir())
	wantError(t, err, "there is no backup in s3://backups")
	folder := t.TempDir()
	makeBackup(t, folder, first, 100)
	upload(t, b, folder)
	wantFetched(t, b, folder, t.TempDir())
	if keys := s.keys(t); len(keys) != 4 || !strings.HasPrefix(keys[0], first+"/") {
		t.Errorf("keys: %s", keys)
	}
}
