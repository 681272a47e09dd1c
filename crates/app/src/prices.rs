//! Prices: the built-in price list, with the user's overrides.

use std::path::Path;
use std::sync::Arc;

use threadline_usage::PriceBook;

use crate::config::App;
use crate::error::AppError;

impl App {
    /// Returns the built-in price list, overridden by
    /// [`AppConfig::prices_file`](crate::AppConfig::prices_file).
    ///
    /// The file is read once.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub fn prices(&self) -> Result<Arc<PriceBook>, AppError> {
        if let Some(known) = self.prices.get() {
            return Ok(Arc::clone(known));
        }
        let prices = Arc::new(price_list(self.config().prices_file.as_deref())?);
        Ok(Arc::clone(self.prices.get_or_init(|| prices)))
    }
}

/// Returns the built-in price list, overridden by the one in `file`.
///
/// # Errors
///
/// If the file cannot be read or is invalid.
pub fn price_list(file: Option<&Path>) -> Result<PriceBook, AppError> {
    let Some(path) = file else { return Ok(PriceBook::embedded()) };
    let json = std::fs::read_to_string(path).map_err(AppError::read(path))?;
    PriceBook::embedded().with(&json).map_err(|source| AppError::Prices { path: path.to_owned(), source })
}
