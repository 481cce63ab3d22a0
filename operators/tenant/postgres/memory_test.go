package postgres_test

import (
	"context"
	"sync"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// memory is a credential.Store of one name: what is tested here is the database.
type memory struct {
	mu        sync.Mutex
	records   []credential.Record
	published int
	since     time.Time
}

func (m *memory) Create(_ context.Context, _ string, _ credential.Owner, record credential.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if record.Generation <= len(m.records) {
		return credential.ErrExists
	}
	m.records = append(m.records, record)
	return nil
}

func (m *memory) Read(context.Context, string, credential.Owner, int) (credential.Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return credential.Found{Records: append([]credential.Record(nil), m.records...), Published: m.published, Since: m.since}, nil
}

func (*memory) CheckPublish(context.Context, string, credential.Owner, credential.Record) error {
	return nil
}

func (m *memory) Publish(_ context.Context, _ string, _ credential.Owner, record credential.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.published, m.since = record.Generation, time.Now()
	return nil
}

func (m *memory) Delete(context.Context, string, credential.Owner) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records, m.published = nil, 0
	return nil
}
