// Package einmal is a framework for Kubernetes operators written as handlers.
package einmal
