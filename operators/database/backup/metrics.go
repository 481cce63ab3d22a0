package backup

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// Metrics are the metrics of backups. Their labels are the namespace and the name of the Database.
type Metrics struct{ begun, size *prometheus.GaugeVec }

// Register returns the metrics of a registry. They are registered once, even if several operators of a process call it. It panics if the registry has other
// metrics of these names.
func Register(registry prometheus.Registerer) Metrics {
	return Metrics{
		begun: gauge(registry, "database_backup_timestamp_seconds", "When the last backup began, in seconds since 1970."),
		size:  gauge(registry, "database_backup_size_bytes", "The size of the last backup."),
	}
}

func gauge(registry prometheus.Registerer, name, help string) *prometheus.GaugeVec {
	made := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"namespace", "name"})
	err := registry.Register(made)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if known, same := registered.ExistingCollector.(*prometheus.GaugeVec); same {
			return known
		}
	}
	if err != nil {
		panic(err)
	}
	return made
}

// Set sets the metrics of a Database to what its status says. A backup of unknown size has none.
func (m Metrics) Set(db *v1.Database) {
	m.Forget(db)
	if db.Status.Backup == nil || db.Status.Backup.LastSuccess == nil {
		return
	}
	last := db.Status.Backup.LastSuccess
	m.begun.WithLabelValues(db.Namespace, db.Name).Set(float64(last.Time.Unix()))
	if last.Size != nil {
		m.size.WithLabelValues(db.Namespace, db.Name).Set(last.Size.AsApproximateFloat64())
	}
}

// Forget removes the metrics of a Database.
func (m Metrics) Forget(db *v1.Database) {
	m.begun.DeleteLabelValues(db.Namespace, db.Name)
	m.size.DeleteLabelValues(db.Namespace, db.Name)
}
