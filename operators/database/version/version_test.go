package version

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

func TestTheVersionIsChosen(t *testing.T) {
	unsupported := "version 9.6 is not supported; supported are 15, 16, 17, 18"
	other := "version 17 cannot read the data of version 16 in the volume; set spec.version to 16, or create another Database with version 17 that restores a backup: spec.bootstrap.fromBackup"
	tests := map[string]struct {
		wanted, running, data string
		want                  Choice
	}{
		"a new database":                        {"16", "", "", Choice{Version: "16"}},
		"a minor version":                       {"16.4", "", "", Choice{Version: "16.4"}},
		"another minor version":                 {"16.5", "16.4", "16", Choice{Version: "16.5"}},
		"another version before there are data": {"17", "16", "", Choice{Version: "17"}},
		"not supported":                         {"9.6", "", "", Choice{"", unsupported, "NotSupported"}},
		"not supported any more":                {"9.6", "16.4", "16", Choice{"16.4", unsupported, "NotSupported"}},
		"another major version":                 {"17", "16.4", "16", Choice{"16.4", other, "DataOfAnotherVersion"}},
		"another major version, status is lost": {"17", "", "16", Choice{"16", other, "DataOfAnotherVersion"}},
		"the status says another version":       {"17", "17", "16", Choice{"16", other, "DataOfAnotherVersion"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Of(v1.PostgreSQL).Choose(test.wanted, test.running, test.data)); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}
