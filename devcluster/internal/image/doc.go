// Package image builds container images without a container engine and without a
// registry. An image consists of a base with CA certificates, packages of Debian,
// files of this machine, and programs. The same files give the same image.
package image
