//! Namespaces, and tables that serve or do not: each change one edit of the manifest.

use std::sync::PoisonError;

use basalt_store::{NamespaceDescriptor, NamespaceLoad, TableName, TableState};

use crate::core::Core;
use crate::error::Result;
use crate::manifest::{Catalog, Edit};
use crate::table::Shape;

impl Core {
    /// Makes a namespace.
    pub(crate) fn create_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        self.condition.check()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        let mut manifest = self.manifest();
        manifest.catalog().namespaces.check_create(&namespace)?;
        self.edit(&mut manifest, &[Edit::SetNamespace(namespace)])
    }

    /// Gives a namespace other properties; its tables act on them at once.
    pub(crate) fn alter_namespace(&self, namespace: &NamespaceDescriptor) -> Result<()> {
        self.condition.check()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut manifest = self.manifest();
            manifest.catalog().namespaces.check_alter(namespace)?;
            self.edit(&mut manifest, &[Edit::SetNamespace(namespace.clone())])?;
        }
        for table in self.all_tables() {
            let shape = table.shape();
            if shape.descriptor.name.namespace() == &*namespace.name {
                let state = TableState { namespace_read_only: namespace.is_read_only(), ..shape.state };
                table.set_shape(Shape { state, ..Shape::clone(&shape) });
            }
        }
        Ok(())
    }

    /// Removes a namespace that holds no table.
    pub(crate) fn drop_namespace(&self, name: &str) -> Result<()> {
        self.condition.check_alive()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        let mut manifest = self.manifest();
        let catalog = manifest.catalog();
        catalog.namespaces.check_drop(name, catalog.load_of(name).tables_count)?;
        self.edit(&mut manifest, &[Edit::DropNamespace { name: name.into() }])
    }

    /// Lets a table serve, or not; what is under way when it is disabled is done. On a full disk too: to drop a table gives space back,
    /// and it must be disabled first.
    pub(crate) fn switch_table(&self, name: &TableName, enable: bool) -> Result<()> {
        self.condition.check_alive()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table(name)?;
        let shape = table.shape();
        shape.state.check_switch(name, enable)?;
        let disabled = !enable;
        self.edit(&mut self.manifest(), &[Edit::SetTableState { id: table.id, disabled }])?;
        let state = TableState { disabled, ..shape.state };
        table.set_shape(Shape { state, ..Shape::clone(&shape) });
        Ok(())
    }
}

impl Catalog {
    /// The state of a table of so many regions that may be made.
    pub(crate) fn state_of_new(&self, table: &TableName, regions_count: u64) -> basalt_store::Result<TableState> {
        self.namespaces.check_table(table, regions_count, self.load_of(table.namespace()))?;
        let namespace_read_only = self.namespaces.get(table.namespace())?.is_read_only();
        Ok(TableState { disabled: false, namespace_read_only })
    }

    /// What a namespace's quotas are held against.
    pub(crate) fn load_of(&self, namespace: &str) -> NamespaceLoad {
        let tables = self.tables.values().filter(|table| table.descriptor.name.namespace() == namespace);
        NamespaceLoad::of(tables.map(|table| table.regions.len()))
    }
}
