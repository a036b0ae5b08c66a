// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Delivery says how Tidewaiter delivers the promoted work.
type Delivery struct {
	// branch is the branch that the watchdog pushes. Defaults to tidewaiter/<name of the Feature>. Fixed at creation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9._/-]*[A-Za-z0-9_]$|^[A-Za-z0-9_]$') && !self.contains('..') && !self.contains('//') && !self.contains('/.') && !self.endsWith('.lock') && !self.contains('.lock/')",message="branch must be a valid Git branch name made of letters, digits, '.', '_', '/' and '-'"
	Branch string `json:"branch,omitempty"`
	// push makes the watchdog push the branch to the repository. Otherwise the work stays on the trusted volume.
	// +optional
	// +kubebuilder:default=true
	Push *bool `json:"push,omitempty"`
	// author is the author of the delivered commits.
	// +optional
	Author *CommitAuthor `json:"author,omitempty"`
	// gates are the gates that must pass before the delivery, by name from spec.gates. Each runs on a fresh checkout of the commit to deliver, in a pod where no agent has been. A SupervisorPolicy can require more (gates), which a Feature cannot remove or change.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	Gates []string `json:"gates,omitempty"`
	// pullRequest asks for a pull request of the delivered branch.
	// +optional
	// +kubebuilder:validation:XValidation:rule="false",message="this version does not act on spec.delivery.pullRequest: remove it, and open the pull request from the delivered branch"
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// approval says whether an approver must approve the delivery. Required holds it until approvedCommit names the head. A SupervisorPolicy can require approval as well (delivery.approval), whatever the Feature says.
	// +optional
	// +kubebuilder:default=None
	Approval Approval `json:"approval,omitempty"`
	// approvedCommit is the exact commit that the watchdog may deliver (status.head). To set it, you need the verb "approve" on features.
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	ApprovedCommit string `json:"approvedCommit,omitempty"`
}

// CommitAuthor is a Git identity.
type CommitAuthor struct {
	// name is the name of the author.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^<>\\\\x00-\\\\x1f]+$')",message="author name must not contain '<', '>' or control characters"
	Name string `json:"name"`
	// email is the email address of the author.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=254
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^<>\\\\s]+@[^<>\\\\s]+$')",message="author email must look like name@host"
	Email string `json:"email"`
}

// PullRequest describes a pull request.
type PullRequest struct {
	// base is the base branch of the pull request. Defaults to the repository's revision.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9._/-]*[A-Za-z0-9_]$|^[A-Za-z0-9_]$') && !self.contains('..') && !self.contains('//') && !self.contains('/.') && !self.endsWith('.lock') && !self.contains('.lock/')",message="base must be a valid Git branch name made of letters, digits, '.', '_', '/' and '-'"
	Base string `json:"base,omitempty"`
	// title is the title of the pull request. Defaults to the first line of the prompt.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`
	// draft opens the pull request as a draft.
	// +optional
	Draft bool `json:"draft,omitempty"`
}

// Approval says whether an approver must approve the delivery.
// +kubebuilder:validation:Enum=None;Required
type Approval string

// Ways to approve.
const (
	ApprovalNone     Approval = "None"
	ApprovalRequired Approval = "Required"
)
