// S3server is an S3 server for tests and demonstrations. It keeps objects in memory, and checks the access key but not the secret key. Nothing fits into its bucket
// full.
package main

import (
	"flag"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func main() {
	address := flag.String("address", ":9000", "`ADDRESS` to listen on")
	key := flag.String("access-key", "", "access `KEY` that requests must have")
	flag.Parse()
	objects := s3mem.New()
	for _, name := range []string{"backups", "full"} {
		if err := objects.CreateBucket(name); err != nil {
			log.Fatal(err)
		}
	}
	server := http.Server{Addr: *address, Handler: checked(*key, gofakes3.New(objects).Server()), ReadHeaderTimeout: time.Minute}
	log.Fatal(server.ListenAndServe())
}

// checked answers requests with another access key, and those that write into the bucket full.
func checked(key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/"):
			refuse(w, http.StatusForbidden, "InvalidAccessKeyId", "The access key does not exist")
		case r.Method != http.MethodGet && r.Method != http.MethodHead && strings.HasPrefix(r.URL.Path, "/full/"):
			refuse(w, http.StatusInsufficientStorage, "XMinioStorageFull", "Storage backend has reached its minimum free drive threshold")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse answers with an error of S3.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if _, err := w.Write([]byte("<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>")); err != nil {
		log.Print(err)
	}
}
