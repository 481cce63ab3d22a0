package einmal
import (
 _ "sigs.k8s.io/controller-runtime"
 _ "sigs.k8s.io/controller-runtime/pkg/manager"
 _ "github.com/google/go-cmp/cmp"
 _ "github.com/spf13/cobra"
 _ "github.com/fsnotify/fsnotify"
 _ "github.com/go-logr/logr"
 _ "sigs.k8s.io/yaml"
 _ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
 _ "k8s.io/api/core/v1"
 _ "k8s.io/client-go/rest"
)
