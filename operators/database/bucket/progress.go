package bucket

import "time"

// progress writes lines about a file that takes long.
type progress struct {
	bucket   *Bucket
	verb     string // "sent" or "fetched"
	file     string // NAME/FILE
	total    int64  // bytes
	reported time.Time
}

func (b *Bucket) newProgress(verb, file string, total int64) *progress {
	return &progress{b, verb, file, total, time.Now()}
}

// update takes how many bytes are done.
func (p *progress) update(done int64) {
	if time.Since(p.reported) < p.bucket.limits.report {
		return
	}
	p.reported = time.Now()
	p.bucket.print("%s %d of %d MiB of %s", p.verb, done>>20, p.total>>20, p.file)
}
