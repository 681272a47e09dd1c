//! Prices: the built-in price list, with the person's own laid over it.

use std::path::Path;
use std::sync::Arc;

use threadline_usage::Book;

use crate::config::App;
use crate::error::AppError;

impl App {
    /// The price list: the built-in one with [`AppConfig::prices_file`](crate::AppConfig::prices_file) laid over it.
    ///
    /// The file is read once.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has a mistake in it.
    pub fn prices(&self) -> Result<Arc<Book>, AppError> {
        if let Some(known) = self.prices.get() {
            return Ok(Arc::clone(known));
        }
        let prices = Arc::new(price_list(self.config().prices_file.as_deref())?);
        Ok(Arc::clone(self.prices.get_or_init(|| prices)))
    }
}

/// The built-in price list, with the one in `file` laid over it.
///
/// # Errors
///
/// If the file cannot be read, or has a mistake in it.
pub fn price_list(file: Option<&Path>) -> Result<Book, AppError> {
    let Some(path) = file else { return Ok(Book::embedded()) };
    let json = std::fs::read_to_string(path).map_err(AppError::read(path))?;
    Book::embedded().with(&json).map_err(|source| AppError::Prices { path: path.to_owned(), source })
}
