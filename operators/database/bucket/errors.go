package bucket

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
)

// requestError reports that an operation on the bucket has failed.
type requestError struct {
	operation, location string
	cause               error
}

// Error returns the operation, the location and the cause, with the code of the server.
func (e *requestError) Error() string {
	return e.operation + " " + e.location + ": " + describe(e.cause)
}

// Unwrap returns the cause.
func (e *requestError) Unwrap() error { return e.cause }

// fail returns the error of an operation on a key. With "", it is about the folder with the backups.
func (b *Bucket) fail(operation, key string, err error) error {
	return &requestError{operation, b.location(key), err}
}

func describe(err error) string {
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		message := strings.TrimSuffix(strings.TrimSpace(answer.Error()), ".")
		if answer.Code == "" || strings.Contains(message, answer.Code) {
			return message
		}
		return message + " (" + answer.Code + ")"
	}
	// The URL of a request is long and says no more than the location.
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	if strings.HasPrefix(err.Error(), "Connection closed by foreign host") { // minio-go replaces the error io.EOF.
		return "the server closed the connection"
	}
	return err.Error()
}

// damagedError reports that a backup is not as it was made.
type damagedError struct{ backup, reason string }

// Error returns which backup is damaged and why.
func (e *damagedError) Error() string {
	return "the backup " + e.backup + " is damaged, because " + e.reason
}

// isLocal reports whether an error is about a file of this machine, and so not about the bucket.
func isLocal(err error) bool {
	_, damaged := errors.AsType[*damagedError](err)
	_, file := errors.AsType[*fs.PathError](err)
	return damaged || file
}

// hasCode reports whether a server has answered with one of the codes.
func hasCode(err error, codes ...string) bool {
	return slices.Contains(codes, minio.ToErrorResponse(err).Code)
}

// Passes reports whether an error of Upload can pass by itself: the storage was not reached, or has failed. A wrong access key, a missing bucket, a full one
// or a damaged backup stays until a person has acted.
func Passes(err error) bool {
	if answer, answered := errors.AsType[minio.ErrorResponse](err); answered {
		return answer.StatusCode >= http.StatusInternalServerError && answer.StatusCode != http.StatusInsufficientStorage
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, requested := errors.AsType[*requestError](err)
	return requested && !untrusted && !isLocal(err)
}
