package ssm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/einmal-operators/einmal/credential"
)

// version is the version of the format of values.
const version = 1

// maxValue is the maximum size of a value in the standard tier, in bytes.
const maxValue = 4096

// value is the content of a parameter.
type value struct {
	V          int       `json:"v"`
	Owner      string    `json:"owner"`
	Username   string    `json:"username"`
	Password   string    `json:"password"`
	Generation int       `json:"generation"`
	Request    string    `json:"request"`
	Created    time.Time `json:"created"`
	// Overlap is a duration as text. It is missing if the Record.Overlap is 0.
	Overlap string `json:"overlap,omitempty"`
}

// encode returns a record as the text of a value.
func encode(owner credential.Owner, record credential.Record) (string, error) {
	overlap := ""
	if record.Overlap != 0 {
		overlap = max(record.Overlap, 0).String()
	}
	text, err := json.Marshal(value{ //nolint:gosec // the store is where the password belongs
		version, owner.String(), record.Username, record.Password.Reveal(), record.Generation, record.Request, record.Created.UTC().Truncate(time.Second),
		overlap,
	})
	if err != nil {
		return "", errors.New("the record cannot be written as JSON")
	}
	if len(text) > maxValue {
		return "", fmt.Errorf("the record has %d bytes as JSON, and SSM takes %d: give the rotation a shorter id than %d bytes", len(text), maxValue, len(record.Request))
	}
	// SSM treats {{ as a reference to another parameter. In a record, {{ can only be part of a JSON string.
	return strings.ReplaceAll(string(text), "{{", `{\u007b`), nil
}

// parameter is a parameter as it was read.
type parameter struct {
	name, mark string
	record     credential.Record
	changed    time.Time
	// version counts the writes to it.
	version int64
	// wrong says why it is not a credential; "" if it is one.
	wrong string
}

// decode decodes a parameter. It sets the mark of the owner, if there is one, even if the parameter is not a credential.
func decode(read types.Parameter) *parameter {
	found := &parameter{name: aws.ToString(read.Name), changed: aws.ToTime(read.LastModifiedDate), version: read.Version}
	var holds value
	// The error is left out, because it may quote the value.
	if err := json.Unmarshal([]byte(aws.ToString(read.Value)), &holds); err != nil {
		found.wrong = "is not the JSON of a credential"
	}
	found.mark = holds.Owner
	found.record = credential.Record{
		Username: holds.Username, Password: credential.NewPassword(holds.Password), Generation: holds.Generation, Request: holds.Request,
		Created: holds.Created,
	}
	var ok bool
	found.record.Overlap, ok = overlapOf(holds.Overlap)
	switch {
	case found.wrong != "":
	case read.Type != types.ParameterTypeSecureString:
		found.wrong = fmt.Sprintf("is a %s and not a %s", read.Type, types.ParameterTypeSecureString)
	case holds.V != version:
		found.wrong = fmt.Sprintf("has the form v=%d, and this program knows v=%d", holds.V, version)
	case !ok:
		found.wrong = "has an overlap that is not a duration"
	case holds.Username == "":
		found.wrong = "has no username"
	case holds.Password == "":
		found.wrong = "has no password"
	}
	return found
}

// overlapOf returns the Record.Overlap in a value.
func overlapOf(text string) (time.Duration, bool) {
	if text == "" {
		return 0, true
	}
	overlap, err := time.ParseDuration(text)
	return cmp.Or(overlap, credential.NoOverlap), err == nil && overlap >= 0
}

// maxGeneration is more than any credential reaches: this package did not write a copy that names a later generation.
const maxGeneration = 1<<31 - 2

// named returns the generation that the copy for readers names; 0 if the copy is not a credential.
func (p *parameter) named() int {
	if p == nil || p.wrong != "" || p.record.Generation < 1 || p.record.Generation > maxGeneration {
		return 0
	}
	return p.record.Generation
}

// owned returns credential.ErrConflict if the parameter exists and does not have the owner's mark.
func (p *parameter) owned(owner credential.Owner) error {
	if p == nil || p.mark == owner.String() {
		return nil
	}
	mark := "no owner's mark"
	if p.mark != "" {
		mark = fmt.Sprintf("the mark of %q", p.mark)
	}
	return fmt.Errorf("parameter %s has %s, not that of %q: %w; it stays as it is: delete it if it is not needed, or choose another prefix",
		p.name, mark, owner, credential.ErrConflict)
}

// holds returns credential.ErrInvalid if the parameter is not the credential of a generation.
func (p *parameter) holds(generation int) error {
	wrong := p.wrong
	if wrong == "" && p.record.Generation != generation {
		wrong = fmt.Sprintf("has generation %d and not %d", p.record.Generation, generation)
	}
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("parameter %s %s: %w; it stays as it is: restore it from an older version in its history, or delete it", p.name, wrong, credential.ErrInvalid)
}
