//! Namespaces.

use basalt_store::{Error, NamespaceDescriptor, Result};

use super::refused;
use crate::cluster::Cluster;
use crate::descriptor::{namespace, told_namespace};
use crate::error::CallError;
use crate::patience::Patience;
use crate::pb::master::{
    GetNamespaceDescriptorResponse, ListNamespaceDescriptorsResponse, NamespaceNameRequest, NamespaceRequest,
};
use crate::pb::rpc::Empty;

impl Cluster {
    /// # Errors
    /// As [`basalt_store::Store::create_namespace`]'s.
    pub(crate) async fn create_namespace(&self, made: &NamespaceDescriptor) -> Result<()> {
        made.validate_change(None)?;
        self.set_namespace("CreateNamespace", made).await
    }

    /// # Errors
    /// As [`basalt_store::Store::alter_namespace`]'s.
    pub(crate) async fn alter_namespace(&self, altered: &NamespaceDescriptor) -> Result<()> {
        altered.validate()?;
        altered.validate_change(Some(&self.describe_namespace(&altered.name).await?))?;
        self.set_namespace("ModifyNamespace", altered).await
    }

    async fn set_namespace(&self, method: &'static str, set: &NamespaceDescriptor) -> Result<()> {
        let ask = NamespaceRequest {
            namespace_descriptor: namespace(set),
            nonce_group: Some(self.nonce_group),
            nonce: Some(Self::nonce()),
        };
        let is_done = async {
            match self.describe_namespace(&set.name).await {
                Err(Error::UnknownNamespace { .. }) => Ok(false),
                told => Ok(told? == *set),
            }
        };
        self.run_procedure(None, method, &ask, is_done).await.map_err(|error| about_namespace(&set.name, error))
    }

    /// # Errors
    /// As [`basalt_store::Store::drop_namespace`]'s.
    pub(crate) async fn drop_namespace(&self, name: &str) -> Result<()> {
        let ask = NamespaceNameRequest {
            namespace_name: name.to_owned(),
            nonce_group: Some(self.nonce_group),
            nonce: Some(Self::nonce()),
        };
        let is_done = async {
            match self.describe_namespace(name).await {
                Err(Error::UnknownNamespace { .. }) => Ok(true),
                told => told.map(|_| false),
            }
        };
        self.run_procedure(None, "DeleteNamespace", &ask, is_done).await.map_err(|error| about_namespace(name, error))
    }

    /// # Errors
    /// As [`basalt_store::Store::describe_namespace`]'s.
    pub(crate) async fn describe_namespace(&self, name: &str) -> Result<NamespaceDescriptor> {
        let ask = NamespaceNameRequest { namespace_name: name.to_owned(), ..NamespaceNameRequest::default() };
        let mut patience = Patience::of_admin(&self.options);
        let told: std::result::Result<GetNamespaceDescriptorResponse, CallError> =
            self.ask_master("GetNamespaceDescriptor", &ask, &mut patience).await;
        let told = told.map_err(|error| about_namespace(name, refused(None, error)))?;
        Ok(told_namespace(told.namespace_descriptor))
    }

    /// # Errors
    /// As [`basalt_store::Store::list_namespaces`]'s.
    pub(crate) async fn list_namespaces(&self) -> Result<Vec<NamespaceDescriptor>> {
        let mut patience = Patience::of_admin(&self.options);
        let told: std::result::Result<ListNamespaceDescriptorsResponse, CallError> =
            self.ask_master("ListNamespaceDescriptors", &Empty {}, &mut patience).await;
        let told = told.map_err(|error| refused(None, error))?;
        let mut namespaces: Vec<_> = told.namespace_descriptor.into_iter().map(told_namespace).collect();
        namespaces.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(namespaces)
    }
}

/// The contract's own error, where it has one.
fn about_namespace(name: &str, error: Error) -> Error {
    let words = error.to_string();
    let namespace = || name.into();
    match words.split(':').next() {
        Some("NamespaceNotFoundException") => Error::UnknownNamespace { namespace: namespace() },
        Some("NamespaceExistException") => Error::NamespaceExists { namespace: namespace() },
        _ => error,
    }
}
