package version

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

func TestTheVersionIsChosen(t *testing.T) {
	unsupported := "version 9.6 is not supported; supported are 15, 16, 17, 18"
	other := "version 17 cannot read the data of version 16 in the volume; set spec.version to 16, or create another Database with version 17 that restores a backup: spec.bootstrap.fromBackup"
	engine := "the volume holds data of version %s of another engine: create a Database with that engine, or choose another name for this one"
	tests := map[string]struct {
		engine                v1.Engine
		wanted, running, data string
		want                  Choice
	}{
		"a new database":                        {v1.PostgreSQL, "16", "", "", Choice{Version: "16"}},
		"a minor version":                       {v1.PostgreSQL, "16.4", "", "", Choice{Version: "16.4"}},
		"another minor version":                 {v1.PostgreSQL, "16.5", "16.4", "16", Choice{Version: "16.5"}},
		"another version before there are data": {v1.PostgreSQL, "17", "16", "", Choice{Version: "17"}},
		"not supported":                         {v1.PostgreSQL, "9.6", "", "", Choice{"", unsupported, "NotSupported"}},
		"not supported any more":                {v1.PostgreSQL, "9.6", "16.4", "16", Choice{"16.4", unsupported, "NotSupported"}},
		"another major version":                 {v1.PostgreSQL, "17", "16.4", "16", Choice{"16.4", other, "DataOfAnotherVersion"}},
		"another major version, status is lost": {v1.PostgreSQL, "17", "", "16", Choice{"16", other, "DataOfAnotherVersion"}},
		"the status says another version":       {v1.PostgreSQL, "17", "17", "16", Choice{"16", other, "DataOfAnotherVersion"}},
		"a new MariaDB":                         {v1.MariaDB, "10.11", "", "", Choice{Version: "10.11"}},
		"a minor version of MariaDB":            {v1.MariaDB, "10.11.6", "10.11", "10.11", Choice{Version: "10.11.6"}},
		"a MariaDB that is not supported":       {v1.MariaDB, "10", "", "", Choice{"", "version 10 is not supported; supported are 10.11", "NotSupported"}},
		"data of PostgreSQL":                    {v1.MariaDB, "10.11", "16", "16", Choice{"", fmt.Sprintf(engine, "16"), "DataOfAnotherEngine"}},
		"data of MariaDB":                       {v1.PostgreSQL, "16", "10.11", "10.11", Choice{"", fmt.Sprintf(engine, "10.11"), "DataOfAnotherEngine"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Of(test.engine).Choose(test.wanted, test.running, test.data)); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}
