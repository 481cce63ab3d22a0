package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/redact"
)

// Messages are redacted.
func TestSecretsAreRecognised(t *testing.T) {
	redactor := redact.New()
	const pem = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----"
	for text, want := range map[string]string{
		"dial postgres://app:hunter2@db:5432/app: refused":                   "dial postgres://app:***@db:5432/app: refused",
		"dial redis://:hunter2@cache":                                        "dial redis://:***@cache",
		"postgres://app@server:hunter2@db":                                   "postgres://app@server:***@db",
		"postgres://app:p@ss/w?rd@db/app":                                    "postgres://app:***@db/app",
		`parse "postgres://app:hunter 2@db": net/url: invalid userinfo`:      `parse "postgres://app:***@db": net/url: invalid userinfo`,
		`parse "postgres://app:hun/ter2@db": invalid port ":hun" after host`: `parse "postgres://app:***@db": invalid port "***" after host`,
		"mysql: app:hunter2@tcp(db:3306)/app":                                "mysql: app:***@tcp(db:3306)/app",
		"host=db user=app password=hunter2 dbname=app":                       "host=db user=app password=*** dbname=app",
		"host=db password='hunter 2' dbname=app":                             "host=db password=*** dbname=app",
		"PGPASSWORD=hunter2 psql":                                            "PGPASSWORD=*** psql",
		"run tool --password=hunter2 --user=app":                             "run tool --password=*** --user=app",
		"GET /x?token=hunter2: 403":                                          "GET /x?token=*** 403",
		"AWS_SECRET_ACCESS_KEY=hunter2":                                      "AWS_SECRET_ACCESS_KEY=***",
		"client_secret=hunter2":                                              "client_secret=***",
		"db_pass=hunter2":                                                    "db_pass=***",
		"X-Amz-Signature=hunter2":                                            "X-Amz-Signature=***",
		"secret = hunter2":                                                   "secret = ***",
		`{"user":"app","password":"hunter\"2","port":1}`:                     `{"user":"app","password":***,"port":1}`,
		`{"token": "hunter2"}`:                                               `{"token": ***}`,
		`body "{\"password\":\"hunter2\",\"a\":1}"`:                          `body "{\"password\":***,\"a\":1}"`,
		"{User:app Password:hunter2 Port:1}":                                 "{User:app Password:*** Port:1}",
		"map[password:[104 117 110] user:[97]]":                              "map[password:*** user:[97]]",
		"X-Api-Key: hunter2":                                                 "X-Api-Key: ***",
		"user: app\npassword: hunter\n":                                      "user: app\npassword: ***\n",
		"Authorization: Bearer hunter.2":                                     "Authorization: Bearer ***",
		"sent basic dXNlcjpwdw==, got 401":                                   "sent basic ***, got 401",
		"token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln is expired":         "token *** is expired",
		"key " + pem + " is bad":                                             "key *** is bad",
		"cut " + pem[:40]:                                                    "cut ***",
		"data " + base64.StdEncoding.EncodeToString([]byte(pem)) + " is bad": "data *** is bad",
		`spec.adminPassword: Invalid value: "hunter 2": must be longer`:      `spec.adminPassword: Invalid value: ***: must be longer`,
		`data[.password]: Invalid value: "hunter2": must not be so`:          `data[.password]: Invalid value: ***: must not be so`,
	} {
		if diff := cmp.Diff(want, redactor.Text(text)); diff != "" {
			t.Error(diff)
		}
		if again := redactor.Text(redactor.Text(text)); again != redactor.Text(text) {
			t.Errorf("the second time it became %q", again)
		}
	}
}

func TestProseStays(t *testing.T) {
	redactor := redact.New()
	for _, text := range []string{
		"", "no luck", `secrets "db" not found`, "read Secret default/db: connection refused",
		"get the token: connection refused", "wrong password: try again", "token: expired", "password: 401 Unauthorized",
		"bearer authentication failed", "Basic auth is needed", "https://db.example.com:5432/app?x=1 is down",
		"mail admin@example.com", "registry.example.com:5000/app@sha256:abc", "the secretName=db is wrong", "compass=north",
		`Get "https://10.0.0.1:6443/api/v1/secrets": dial tcp 10.0.0.1:6443: connect: connection refused`,
		"get a token: https://idp.example.com/token: 503", "-----BEGIN CERTIFICATE-----", "PASSWORD_FILE=/run/x",
		`Post "https://idp.example.com/token": x509: certificate signed by unknown authority`,
	} {
		if got := redactor.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestKnownValuesAreFoundInAnyForm(t *testing.T) {
	redactor := redact.New()
	const value = "s3 ~~~<cr>\"et\"\n" // Its two base64 forms differ.
	quoted, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{
		value, strings.TrimSpace(value), fmt.Sprintf("%q", value), string(quoted), fmt.Sprintf("%d", []byte(value)), hex.EncodeToString([]byte(value)),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)), url.PathEscape(value),
	} {
		got := redactor.Text("the value "+form+" is wrong", "other", value)
		if strings.Contains(got, "s3") || strings.Contains(got, strings.Trim(form, `"[]=`)) || !strings.Contains(got, redact.Mask) {
			t.Errorf("%q: %q", form, got)
		}
	}
	file := "user = app\nlong-line-of-a-file\nx\n"
	if got := redactor.Text("line 2 (long-line-of-a-file) and x", file); got != "line 2 (***) and x" {
		t.Error(got)
	}
	if got := redactor.Text("hunter and hunter22", "hunter", "hunter22", "a", ""); got != "*** and ***" {
		t.Error(got)
	}
}

func TestValuesOfASecretAreDecoded(t *testing.T) {
	got := redact.Values(object.Body{
		"data": object.Body{"password": base64.StdEncoding.EncodeToString([]byte("hunter2")), "odd": 1.0}, "stringData": object.Body{"b": "plain"},
	})
	if text := fmt.Sprint(got); !strings.Contains(text, "hunter2") || !strings.Contains(text, "plain") {
		t.Error(text)
	}
	if got := redact.Values(object.Body{"data": object.Body{"bad": "%"}}); len(got) != 1 || got[0] != "%" {
		t.Error(got)
	}
}

// FuzzText checks that no text panics, and that a password without spaces never survives where passwords are written.
func FuzzText(f *testing.F) {
	f.Add("dial", "hunter2", " failed")
	f.Add("\"", "p@ss:w/ord", "\"")
	f.Add("-----BEGIN PRIVATE KEY-----", "\\\"", "`[")
	redactor := redact.New()
	f.Fuzz(func(t *testing.T, before, password, after string) {
		_ = redactor.Text(before+password+after, password)
		_ = redactor.Text(before)
		secret := "Zq" + hex.EncodeToString([]byte(password)) + "Zq"
		for _, text := range []string{
			"postgres://app:" + secret + "@db", "password=" + secret, `"token":"` + secret + `"`, "Bearer " + secret, "app:" + secret + "@tcp(db)",
		} {
			if got := redactor.Text(before + " " + text + " " + after); strings.Contains(got, secret) {
				t.Errorf("%q became %q", before+" "+text+" "+after, got)
			}
		}
		if got := redactor.Text(before+secret+after, secret); strings.Contains(got, secret) {
			t.Errorf("a known value survived: %q", got)
		}
	})
}
